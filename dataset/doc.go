// Package dataset declares what Talaria records: tasks, episodes, messages,
// tool calls, spans, rewards and the trajectory that holds them, together with
// their identities and the one table that maps an exit reason to an outcome.
//
// Everything here is a plain value. A type that reaches disk is declared in
// this package; its flat form, one row per Parquet row, is in dataset/store.
// The package imports the standard library only, so that every other package
// may import it.
//
// Start with [Trajectory]: it is what came of one attempt at an [Episode].
package dataset
