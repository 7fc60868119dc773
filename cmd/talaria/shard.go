package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/runner"
)

// autoShard begins the values of --shard that read the environment.
const autoShard = "auto"

// Variables of the schedulers that number the processes of a job. Nothing else
// reads them.
const (
	slurmID    = "SLURM_ARRAY_TASK_ID"
	slurmMin   = "SLURM_ARRAY_TASK_MIN"
	slurmStep  = "SLURM_ARRAY_TASK_STEP"
	slurmCount = "SLURM_ARRAY_TASK_COUNT"
	jobIndex   = "JOB_COMPLETION_INDEX"
)

func shardFlag(usage string) cli.Flag { return &cli.StringFlag{Name: "shard", Usage: usage} }

// shardHelp is the description of commands with --shard.
const shardHelp = "--shard i/n takes the tasks of one of n shards; i counts from 0: the shards of 8 are 0/8 to 7/8. A task\n" +
	"belongs to a shard by its id, with all its variants and samples; --limit comes before. --shard auto reads\n" +
	"the shard from a SLURM job array (SLURM_ARRAY_TASK_ID, _MIN, _STEP and _COUNT), whatever its first id is;\n" +
	"--shard auto/n reads it from JOB_COMPLETION_INDEX, as an Indexed Job of Kubernetes sets it."

// shardOf reads --shard of a command: i/n, auto or auto/n.
func shardOf(c *cli.Context, std *stdio) (runner.Shard, error) {
	if !c.IsSet("shard") {
		return runner.Shard{}, nil
	}
	shard, err := parseShard(c.String("shard"), std.lookupEnv)
	if err != nil {
		return shard, usageErrorf(c.Command.HelpName, "--shard: %w", err)
	}
	return shard, nil
}

func parseShard(text string, lookup func(string) (string, bool)) (runner.Shard, error) {
	if text == autoShard {
		return slurmShard(lookup)
	}
	count, isAuto := strings.CutPrefix(text, autoShard+"/")
	if !isAuto {
		return runner.ParseShard(text)
	}
	index, set := lookup(jobIndex)
	if !set {
		return runner.Shard{}, fmt.Errorf("%s: %s is not set: it comes from a Job of Kubernetes with completionMode Indexed; elsewhere name the shard, as in 0/%s",
			text, jobIndex, count)
	}
	shard, err := runner.ParseShard(index + "/" + count)
	if err != nil {
		return shard, fmt.Errorf("%s: %s is %s: %w", text, jobIndex, index, err)
	}
	return shard, nil
}

// slurmShard is the place of this process in its job array, whose ids may begin
// anywhere and have a step.
func slurmShard(lookup func(string) (string, bool)) (runner.Shard, error) {
	values := map[string]int{}
	for _, name := range []string{slurmID, slurmMin, slurmStep, slurmCount} {
		text, set := lookup(name)
		if !set {
			return runner.Shard{}, fmt.Errorf("auto: %s is not set: it comes from a SLURM job array, as by 'sbatch --array=0-7'; on Kubernetes give auto/n, elsewhere name the shard, as in 0/8", name)
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return runner.Shard{}, fmt.Errorf("auto: %s is no number: %q", name, text)
		}
		values[name] = n
	}
	shard := runner.Shard{Count: values[slurmCount]}
	offset, step := values[slurmID]-values[slurmMin], values[slurmStep]
	if step < 1 || shard.Count < 1 || offset < 0 || offset%step != 0 || offset/step >= shard.Count {
		return shard, errors.New("auto: the ids of the job array are not evenly spaced: number it as by 'sbatch --array=0-7', or name the shard, as in 0/8")
	}
	shard.Index = offset / step
	return shard, nil
}

// shardOn is the shard that a run goes on with: its own. Another one, if it is
// asked for, is refused.
func shardOn(record store.Run, dir string, asked runner.Shard) (own runner.Shard, err error) {
	if record.Shard != "" {
		if own, err = runner.ParseShard(record.Shard); err != nil {
			return own, fmt.Errorf("reading the shard of %s: %w", dir, err)
		}
	}
	switch {
	case asked.Whole() || asked == own:
		return own, nil
	case own.Whole():
		return own, usageErrorf("", "%s is a run of the whole plan and not of shard %s: give another directory", dir, asked)
	default:
		return own, usageErrorf("", "%s is the run of shard %s and not of %s: a run goes on with its own shard; give another directory for this one", dir, own, asked)
	}
}

// shardAttr is the shard in a log record, nothing for the whole plan.
func shardAttr(s runner.Shard) []any {
	if s.Whole() {
		return nil
	}
	return []any{slog.String("shard", s.String())}
}

func inBrackets(s runner.Shard) string {
	if s.Whole() {
		return ""
	}
	return fmt.Sprintf(" (shard %s)", s)
}
