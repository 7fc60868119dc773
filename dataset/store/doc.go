// Package store records the attempts of a run and loses none of them.
//
// A run is a directory. What is written goes to the journal first, with one
// fsync for all that waits (natural group commit), and is acknowledged then.
// From memory it goes to a part: one Parquet file per table, committed together
// by one line of manifest.jsonl. The manifest is the truth; the journal is read
// after a crash and by readers of a running run.
//
// [Create] makes a run, [Open] goes on with one; both return a [Store], of
// which there is one per directory at a time. [Store.Write] records attempts,
// [Store.Call] the two lines of each model call, so that what was paid for
// survives even kill -9. [OpenView] reads without a lock, also while a run is
// being written.
package store
