package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/env/sandbox/local"
)

type doctorOptions struct{ Format string }

func newDoctorCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "Checks what sandboxes can enforce on this machine, and says how to get what is missing.",
		UsageText: "talaria doctor",
		Flags:     []cli.Flag{choiceFlag("format", "print as `FORMAT`", "table", "json")},
		Action: func(c *cli.Context) error {
			return runDoctor(c.Context, doctorOptions{Format: c.String("format")}, std)
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
	probed := local.Probe(ctx, local.Options{})
	found := make([]finding, len(probed))
	bad := 0
	for i, f := range probed {
		found[i] = finding(f)
		if !f.OK {
			bad++
		}
	}
	if err := printFindings(std, opts.Format, found); err != nil {
		return err
	}
	if bad > 0 {
		return errors.New("sandboxes do not hold all that they should: each line that is missing has its fix")
	}
	return nil
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
