// Package configs reads the config of a run: strict, versioned YAML.
//
// Call [Load]; it returns a [Run] that is complete and checked, or every
// problem at once, each as one line with file, line, key and what to do.
// [Run.Variants] expands the sweep, [Run.Sources] lists the sources of tasks
// with the env and the scorers of each, [Run.Prompt] renders first messages.
// A Run is read-only once loaded and may be shared by goroutines.
//
// # Where a value comes from
//
// Flags override environment variables, which override the file, which
// overrides the defaults ([Defaults]). Among flags, named ones and --set apply
// in the order of [Options.Flags] then [Options.Set], and -m comes last.
//
// The environment variable of a key is TALARIA_ and the key in upper case with
// its dots as underscores: TALARIA_LIMITS_RUN_COST_USD is limits.run.cost_usd.
// An empty variable counts as absent. Keys of plug-ins and of single scorers
// have no variable, and version has none; where there are several sources of
// tasks, TALARIA_TASKS_... is an error.
//
// --set a.b.c=value and the variables parse the value as YAML, except for keys
// that hold text: those take the value as it stands, so that {question}, ####
// and /A: (.*)/ need no second quoting. In a key, a number is the index of a
// list, * is every element, + is one more; a list of one element may be
// addressed without index. A key that is set so no longer takes part in the
// sweep.
//
// Relative paths in a file are relative to its folder, those from flags and
// the environment to the working directory. They are made absolute at load.
// The key out is always relative to the working directory.
//
// # Identity
//
// Every key is of one class (the struct tag class). Identity keys say what an
// episode is: they are hashed into its id, and a run is never continued under
// another identity unless asked to. Selection keys say which episodes and
// which offline scores a run has. Operation keys say how it is carried out.
// Files enter the identity by the SHA-256 of their content, never by path. A
// key that holds its zero value is left out of the hash, so that a later
// release can add keys that are off by default.
package configs
