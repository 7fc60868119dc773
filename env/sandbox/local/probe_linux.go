package local

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/talaria-run/talaria/env/sandbox"
)

// Probe starts a sandbox with every limit and tells what of it holds on this
// machine, and how to get what does not.
func Probe(ctx context.Context, opts Options) []Finding {
	opts.AllowUnconfined = false
	info, err := probe(ctx, opts)
	if err != nil {
		finding := Finding{Name: Name, Detail: err.Error(), Fix: "see the message"}
		if missing, ok := errors.AsType[*sandbox.UnavailableError](err); ok {
			finding.Detail, finding.Fix = missing.Reason, missing.Fix
		}
		return []Finding{finding}
	}
	findings := []Finding{{Name: Name, OK: true, Detail: "bubblewrap starts sandboxes"}}
	for _, want := range wanted() {
		found := info.Mechanism(want.Name)
		want.OK = found != "" && found != want.Detail
		if want.OK {
			want.Fix = ""
		}
		want.Detail = cmp.Or(found, "not enforced")
		findings = append(findings, want)
	}
	return findings
}

func probe(ctx context.Context, opts Options) (info sandbox.Info, err error) {
	b, err := New(ctx, opts)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, b.Close(context.WithoutCancel(ctx))) }()
	s, err := b.Start(ctx, sandbox.Spec{Memory: 256 << 20, Disk: 64 << 20, Pids: 64, Timeout: time.Minute})
	if err != nil {
		return info, err
	}
	return s.Info(), nil // Close of the backend ends it
}

// wanted lists what should hold; Detail is a mechanism that is not good enough.
func wanted() []Finding {
	const cgroups = "run as root, or where the user may make cgroups: systemd-run --user --scope -p Delegate=yes talaria ..."
	return []Finding{
		{Name: sandbox.HoldSystem},
		{Name: sandbox.HoldProcesses},
		{Name: sandbox.HoldNetwork},
		{Name: sandbox.HoldNesting, Fix: "bubblewrap 0.8 or newer"},
		{Name: sandbox.HoldDisk, Fix: "bubblewrap 0.8 or newer"},
		{Name: sandbox.HoldFiles, Fix: "run as root: only then can the number of files be limited"},
		{Name: sandbox.HoldMemory, Detail: "rlimit", Fix: "the limit is one for each process, not for all; " + cgroups},
		{Name: sandbox.HoldPids, Fix: cgroups},
		{Name: sandbox.HoldUser, Fix: "run as root: each sandbox then gets a user of its own"},
		{Name: sandbox.HoldTime},
	}
}
