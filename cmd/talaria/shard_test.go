package main

import (
	"strings"
	"testing"

	"github.com/talaria-run/talaria/runner"
)

func TestParseShard(t *testing.T) {
	slurm := func(id, first, step, count string) map[string]string {
		return map[string]string{slurmID: id, slurmMin: first, slurmStep: step, slurmCount: count}
	}
	tests := []struct {
		name, text string
		env        map[string]string
		want       runner.Shard
		err        string // part of it
	}{
		{name: "plain", text: "3/8", env: slurm("5", "0", "1", "8"), want: runner.Shard{Index: 3, Count: 8}},
		{name: "from 0", text: "auto", env: slurm("5", "0", "1", "8"), want: runner.Shard{Index: 5, Count: 8}},
		{name: "from 1", text: "auto", env: slurm("8", "1", "1", "8"), want: runner.Shard{Index: 7, Count: 8}},
		{name: "with a step", text: "auto", env: slurm("15", "3", "4", "4"), want: runner.Shard{Index: 3, Count: 4}},
		{name: "alone", text: "auto", env: slurm("3", "3", "1", "1"), want: runner.Shard{Index: 0, Count: 1}},
		{name: "no array", text: "auto", err: "SLURM_ARRAY_TASK_ID is not set: it comes from a SLURM job array"},
		{name: "half an array", text: "auto", env: map[string]string{slurmID: "1", slurmMin: "0"}, err: "SLURM_ARRAY_TASK_STEP is not set"},
		{name: "no number", text: "auto", env: slurm("x", "0", "1", "8"), err: `SLURM_ARRAY_TASK_ID is no number: "x"`},
		{name: "a list", text: "auto", env: slurm("7", "1", "1", "3"), err: "not evenly spaced"},
		{name: "between steps", text: "auto", env: slurm("2", "1", "2", "3"), err: "not evenly spaced"},
		{name: "no step", text: "auto", env: slurm("2", "1", "0", "3"), err: "not evenly spaced"},
		{name: "indexed job", text: "auto/4", env: map[string]string{jobIndex: "3"}, want: runner.Shard{Index: 3, Count: 4}},
		{name: "more indices than shards", text: "auto/4", env: map[string]string{jobIndex: "4"}, err: "JOB_COMPLETION_INDEX is 4: 4/4: shards count from 0"},
		{name: "no indexed job", text: "auto/4", env: slurm("5", "0", "1", "8"), err: "JOB_COMPLETION_INDEX is not set"},
		{name: "slurm is not an indexed job", text: "auto", env: map[string]string{jobIndex: "3"}, err: "SLURM_ARRAY_TASK_ID is not set"},
		{name: "another word", text: "automatic", err: `want a shard as i/n, 0/8 to 7/8, got "automatic"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseShard(test.text, func(name string) (string, bool) {
				value, set := test.env[name]
				return value, set
			})
			switch {
			case test.err == "" && err != nil:
				t.Error(err)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("got error %v, want %q", err, test.err)
			case test.err == "" && got != test.want:
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
