package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/runner"
)

type runOptions struct {
	Config string
	Load   configs.Options
	Shard  runner.Shard
	Out    string // the run's directory; "": a new one in the config's out
	Resume bool
}

func newRunCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "Runs all episodes of a config and records them in a run directory.",
		UsageText: "talaria run bundled:quickstart",
		ArgsUsage: "CONFIG",
		Description: shardHelp + "\n\n" +
			"'talaria merge' makes one run of the shards' runs.",
		Flags: planFlags(),
		Action: func(c *cli.Context) error {
			opts, err := runOptionsOf(c, std)
			if err != nil {
				return err
			}
			return runRun(c.Context, opts, std)
		},
	}
}

// planFlags are the flags of run, which plan has too: they say what is run.
func planFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "model", Aliases: []string{"m"}, Usage: "use `PRESET/MODEL`; several are swept over"},
		&cli.StringFlag{Name: "base-url", Usage: "reach the model at `URL`"},
		&cli.IntFlag{Name: "limit", Usage: "take the first `N` tasks of each source"},
		shardFlag("run one shard of the tasks, `i/n`, auto or auto/n"),
		&cli.IntFlag{Name: "samples", Usage: "run each task `N` times"},
		&cli.IntFlag{Name: "concurrency", Usage: "run up to `N` episodes at once"},
		setFlag(),
		&cli.StringFlag{Name: "out", Usage: "record in `DIR`, which must be absent or empty unless --resume"},
		&cli.StringFlag{Name: "name", Usage: "begin the directory's name with `NAME`"},
		&cli.StringSliceFlag{Name: "tag", Usage: "add `TAG` to every row"},
		&cli.StringFlag{Name: "note", Usage: "keep `TEXT` with the run"},
		&cli.BoolFlag{Name: "resume", Usage: "go on with the run in --out if there is one"},
	}
}

// runOptionsOf reads the planFlags.
func runOptionsOf(c *cli.Context, std *stdio) (runOptions, error) {
	shard, err := shardOf(c, std)
	if err != nil {
		return runOptions{}, err
	}
	return runOptions{
		Config: c.Args().First(), Shard: shard,
		Load: configs.Options{
			Flags: runFlags(c), Set: c.StringSlice("set"), Model: c.StringSlice("model"), Env: std.lookupEnv,
		},
		Out: c.String("out"), Resume: c.Bool("resume"),
	}, nil
}

func setFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "set", Usage: "set a key of the config, `KEY=VALUE`"}
}

// runFlags are the flags that stand for a key of the config.
func runFlags(c *cli.Context) []configs.Flag {
	var flags []configs.Flag
	add := func(name, key, value string) {
		if c.IsSet(name) {
			flags = append(flags, configs.Flag{Name: "--" + name, Key: key, Value: value})
		}
	}
	add("base-url", "agent.base_url", c.String("base-url"))
	add("limit", "tasks.*.limit", strconv.Itoa(c.Int("limit")))
	add("samples", "samples", strconv.Itoa(c.Int("samples")))
	add("concurrency", "limits.concurrency.episodes", strconv.Itoa(c.Int("concurrency")))
	add("name", "name", c.String("name"))
	add("note", "note", c.String("note"))
	for _, tag := range c.StringSlice("tag") {
		flags = append(flags, configs.Flag{Name: "--tag", Key: "tags.+", Value: tag})
	}
	return flags
}

func runRun(ctx context.Context, opts runOptions, std *stdio) error {
	goesOn, err := opts.goesOn()
	if err != nil {
		return err
	}
	cfg, err := configs.Load(opts.Config, opts.Load)
	if err != nil {
		return &usageError{err: err}
	}
	if goesOn {
		return continueRun(ctx, opts.Out, cfg, resumeOptions{Run: opts.Out, Shard: opts.Shard}, std)
	}
	return startRun(ctx, opts, cfg, std)
}

// goesOn tells whether the options are to go on with a run that there is.
func (o runOptions) goesOn() (bool, error) {
	switch {
	case o.Resume && o.Out == "":
		return false, usageErrorf("talaria run", "--resume needs --out with the directory of the run to go on with")
	case o.Out == "" || !isRun(o.Out):
		return false, nil
	case !o.Resume:
		return false, usageErrorf("talaria run", "%s holds a run already: give --resume to go on with it, or another --out", o.Out)
	default:
		return true, nil
	}
}

func startRun(ctx context.Context, opts runOptions, cfg *configs.Run, std *stdio) error {
	s, err := prepare(ctx, cfg, opts.Shard, nil, std)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	record, err := s.newRecord(opts.Config)
	if err != nil {
		return err
	}
	dir := opts.Out
	if dir == "" {
		dir = filepath.Join(cfg.Out, directoryName(cfg.Name, record.CreatedAt))
	}
	if err := checkEmpty(dir); err != nil {
		return err
	}
	st, err := store.Create(dir, record, s.storeOptions())
	if err != nil {
		return fmt.Errorf("making the run directory: %w", err)
	}
	return s.run(ctx, dir, st, runner.Retry{})
}

func isRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "run.json"))
	return err == nil
}

// checkEmpty refuses a directory that holds something else.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return usageErrorf("talaria run", "%s: it is no directory: give a new one as --out", dir)
	}
	if err != nil {
		return fmt.Errorf("looking into the run directory: %w", err)
	}
	if len(entries) > 0 {
		return usageErrorf("talaria run", "%s is not empty and holds no run: give a new directory as --out", dir)
	}
	return nil
}

// directoryName is <name>-<utc time>-<4 hex>.
func directoryName(name string, at time.Time) string {
	var tail [2]byte
	_, _ = rand.Read(tail[:]) // never fails
	return name + "-" + at.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(tail[:])
}
