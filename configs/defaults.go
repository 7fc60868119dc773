package configs

import "time"

// Defaults is the config of an empty file: every default, with its reason.
// What is zero here is off or none. Defaults that follow from other keys are
// made where they are asked for: a source's name, env and scorers in
// [Run.Sources], the key of a preset in [Agent.Key], the template in
// [Run.Prompt].
func Defaults() Run {
	return Run{
		Samples: 1,
		// The only env that needs nothing but a question.
		Env: Env{Name: "answer"},
		// Tools are off until named, so that a question is a question.
		Agent: Agent{Kind: "tools"},
		// What a small build or a test suite needs; a bomb is stopped long before
		// it is felt.
		Sandbox: Sandbox{
			Backend: "local", Network: "none",
			Memory: 512 << 20, Disk: 512 << 20, Pids: 256, Timeout: 2 * time.Minute,
		},
		Limits: Limits{
			Concurrency: Concurrency{
				Episodes:  256, // episodes mostly wait for requests
				Requests:  64,  // what most endpoints bear without refusing
				Sandboxes: 32,  // what they hold may take all of the memory that it may
				Grading:   8,   // scorers cost processor time, not waiting
			},
			Episode: EpisodeLimits{
				Time:  30 * time.Minute, // longer than useful work takes, shorter than a night lost to one loop
				Turns: 30,
				Bytes: 64 << 20, // what a reader can hold
			},
			Retries: Retries{
				Infra:    2,
				Requests: 6, // with doubling pauses about a minute
			},
			FailOnError: 0.1,
			DiskWait:    10 * time.Minute, // time to make room
			Score:       5 * time.Minute,
			Close:       time.Minute,
			Request:     10 * time.Minute, // a reasoning model thinks in silence
		},
		Out: "runs",
	}
}
