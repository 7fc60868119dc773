package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/env/sandbox/local"
)

type doctorOptions struct {
	Format string
	Model  bool            // look at a model's endpoint, not at this machine
	Load   configs.Options // of the model
}

func newDoctorCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:        "doctor",
		Usage:       "Checks what sandboxes can enforce on this machine, or a model's endpoint, and says how to get what is missing.",
		UsageText:   "talaria doctor -m vllm/my-model",
		Description: "With -m it makes one call with a tool, which is paid for where calls are, and looks at nothing else.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "look at the endpoint of `PRESET/MODEL`"},
			&cli.StringFlag{Name: "base-url", Usage: "reach the model at `URL`"},
			setFlag(),
			choiceFlag("format", "print as `FORMAT`", "table", "json"),
		},
		Action: func(c *cli.Context) error {
			opts := doctorOptions{Format: c.String("format"), Model: c.IsSet("model")}
			opts.Load = configs.Options{Set: c.StringSlice("set"), Model: []string{c.String("model")}, Env: std.lookupEnv}
			if c.IsSet("base-url") {
				opts.Load.Flags = []configs.Flag{{Name: "--base-url", Key: "agent.base_url", Value: c.String("base-url")}}
			}
			return runDoctor(c.Context, opts, std)
		},
	}
}

// finding is one line of what the doctor found. Its JSON keeps its meaning
// between releases.
type finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

func runDoctor(ctx context.Context, opts doctorOptions, std *stdio) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	found, err := opts.examine(ctx, std)
	if err != nil {
		return err
	}
	if err := printFindings(std, opts.Format, found); err != nil {
		return err
	}
	switch {
	case !slices.ContainsFunc(found, func(f finding) bool { return !f.OK }):
		return nil
	case opts.Model:
		return errors.New("the endpoint does not do all that it should: each line that is missing has its fix")
	}
	return errors.New("sandboxes do not hold all that they should: each line that is missing has its fix")
}

func (o doctorOptions) examine(ctx context.Context, std *stdio) ([]finding, error) {
	if o.Model {
		return examineModel(ctx, o.Load, std)
	}
	probed := local.Probe(ctx, local.Options{})
	found := make([]finding, len(probed))
	for i, f := range probed {
		found[i] = finding(f)
	}
	return found, nil
}

func printFindings(std *stdio, format string, found []finding) error {
	if format == "json" {
		return json.NewEncoder(std.out).Encode(found)
	}
	for _, f := range found {
		state := "ok"
		if !f.OK {
			state = "missing"
		}
		line := fmt.Sprintf("%-10s %-8s %s\n", f.Name, state, f.Detail)
		if f.Fix != "" {
			line += "           fix: " + f.Fix + "\n"
		}
		if _, err := io.WriteString(std.out, line); err != nil {
			return err
		}
	}
	return nil
}
