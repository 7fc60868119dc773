package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

// again is a run in dir of the attempts that write gives it.
func again(tb testing.TB, fsys FS, dir string, change func(*Run), trs ...*dataset.Trajectory) {
	tb.Helper()
	run := sampleRun()
	run.RunID, run.State = dataset.ID("run", dir), StateComplete
	if change != nil {
		change(&run)
	}
	s, err := Create(dir, run, Options{FS: fsys})
	if err != nil {
		tb.Fatal(err)
	}
	mustWrite(tb, s, trs...)
	mustClose(tb, s)
}

// ending is an attempt at the first episode that ended at a second.
func ending(number, second int, exit dataset.ExitReason) *dataset.Trajectory {
	tr := sampleTrajectory(0, false)
	tr.Episode.Attempt, tr.ExitReason = number, exit
	tr.EndedAt = tr.StartedAt.Add(time.Duration(second) * time.Second)
	tr.Messages[1].Content = fmt.Sprintf("%s at %d", exit, second)
	tr.Reward = nil
	tr.ChooseReward()
	return tr
}

// TestMergeAttempts merges runs that hold attempts of the same episode.
func TestMergeAttempts(t *testing.T) {
	const killed, answered, failed = dataset.ExitKilled, dataset.ExitAnswered, dataset.ExitProviderError
	type runs = [][]*dataset.Trajectory
	tests := []struct {
		name           string
		runs           runs
		prefer         Prefer
		want           []string // number, exit reason and the text of its second message
		twins, dropped int
		err            string
	}{{
		name: "the same attempt is kept once", twins: 1,
		runs: runs{{ending(0, 1, answered)}, {ending(0, 1, answered)}},
		want: []string{"0 answered at 1"},
	}, {
		name: "the same attempts under other numbers", twins: 1,
		runs: runs{{ending(0, 1, killed), ending(1, 2, answered)}, {ending(0, 2, answered)}},
		want: []string{"0 killed at 1", "1 answered at 2"},
	}, {
		name: "numbers of the run that holds all stay", twins: 1,
		runs: runs{{ending(0, 2, answered)}, {ending(3, 1, killed), ending(7, 2, answered)}},
		want: []string{"3 killed at 1", "7 answered at 2"},
	}, {
		name: "others are numbered by their end, the model's own last",
		runs: runs{{ending(0, 1, answered)}, {ending(0, 9, killed), ending(1, 3, failed)}},
		want: []string{"0 provider_error at 3", "1 killed at 9", "2 answered at 1"},
	}, {
		name: "a run may have two of the model's own",
		runs: runs{{ending(0, 1, answered), ending(1, 4, answered)}, {ending(0, 9, killed)}},
		want: []string{"0 killed at 9", "1 answered at 1", "2 answered at 4"},
	}, {
		name: "two ends are refused",
		runs: runs{{ending(0, 1, answered)}, {ending(0, 2, answered)}, {ending(0, 3, killed)}},
		err:  "1 episodes ended as the model's own doing in more than one run, and differently: episode " + sampleEpisode(0).ID + " in /runs/0 and /runs/1",
	}, {
		name: "the first end", prefer: PreferFirst, dropped: 1,
		runs: runs{{ending(0, 3, killed)}, {ending(0, 2, answered)}, {ending(0, 1, answered)}},
		want: []string{"0 killed at 3", "1 answered at 2"},
	}, {
		name: "the last end", prefer: PreferLast, dropped: 1,
		runs: runs{{ending(0, 3, killed)}, {ending(0, 2, answered)}, {ending(0, 1, answered)}},
		want: []string{"0 killed at 3", "1 answered at 1"},
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fsys := newMemFS()
			var dirs []string
			for i, trs := range test.runs {
				dirs = append(dirs, fmt.Sprintf("/runs/%d", i))
				again(t, fsys, dirs[i], nil, trs...)
			}
			m, err := mergeOf(fsys, test.prefer, dirs...)
			if test.err != "" {
				if err == nil || err.Error() != test.err || exists(fsys, mergedDir) {
					t.Errorf("got error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.Twins != test.twins || m.Dropped != test.dropped {
				t.Errorf("%d twins, %d dropped, want %d, %d", m.Twins, m.Dropped, test.twins, test.dropped)
			}
			wantAttempts(t, allRows(t, fsys, mergedDir), test.want)
		})
	}
}

// wantAttempts wants attempts by number and the text of their second message,
// and all rows of each once.
func wantAttempts(t *testing.T, rows *Rows, want []string) {
	t.Helper()
	got := make([]string, 0, len(want))
	for _, r := range rows.Messages {
		if r.Position == 1 {
			got = append(got, fmt.Sprintf("%d %s", r.Attempt, r.Content))
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	n, spans := len(want), len(sampleTrajectory(0, false).Spans)
	if len(rows.Attempts) != n || len(rows.Rewards) != n || len(rows.Spans) != n*spans {
		t.Errorf("%d attempts, %d rewards, %d spans of %d attempts", len(rows.Attempts), len(rows.Rewards), len(rows.Spans), n)
	}
}

// A late reward that one of two copies of a run was given is kept, and one that
// both were given is kept once.
func TestMergeLateRewards(t *testing.T) {
	fsys := newMemFS()
	dirs := []string{"/runs/0", "/runs/1"}
	for i, dir := range dirs {
		again(t, fsys, dir, nil, ending(0, 1, dataset.ExitAnswered))
		s := mustOpen(t, dir, Options{FS: fsys})
		at := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
		for _, name := range []string{"both", fmt.Sprintf("only %d", i)} {
			late := dataset.LateReward{EpisodeID: sampleEpisode(0).ID, Reward: dataset.Reward{Name: name, Source: dataset.FromGroup, Value: new(0.5), Chosen: true, CreatedAt: at}}
			mustReward(t, s, late)
		}
		mustClose(t, s)
	}
	if _, err := mergeOf(fsys, PreferNone, dirs...); err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, 4)
	for _, r := range allRows(t, fsys, mergedDir).Rewards {
		got = append(got, r.Name)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"both", "exact", "only 0", "only 1"}, got); diff != "" {
		t.Errorf("rewards (-want +got):\n%s", diff)
	}
}

// A delegated episode goes with its parent.
func TestMergeChildren(t *testing.T) {
	family := func(second int, exit dataset.ExitReason) *dataset.Trajectory {
		tr := ending(0, second, exit)
		child := sampleTrajectory(4, false)
		child.Episode.ID, child.ParentEpisodeID = dataset.ChildID(tr.Episode.ID, 0), tr.Episode.ID
		grandchild := sampleTrajectory(6, false)
		grandchild.Episode.ID, grandchild.ParentEpisodeID = dataset.ChildID(child.Episode.ID, 0), child.Episode.ID
		child.Children = []*dataset.Trajectory{grandchild}
		tr.Children = []*dataset.Trajectory{child}
		return tr
	}
	fsys := newMemFS()
	again(t, fsys, "/runs/0", nil, family(1, dataset.ExitAnswered))
	again(t, fsys, "/runs/1", nil, family(9, dataset.ExitKilled))
	again(t, fsys, "/runs/2", nil, family(1, dataset.ExitAnswered))
	if _, err := mergeOf(fsys, PreferNone, "/runs/0", "/runs/1", "/runs/2"); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	rows := allRows(t, fsys, mergedDir)
	for _, a := range rows.Attempts {
		got[fmt.Sprintf("attempt %d", a.Attempt)]++
	}
	for _, m := range rows.Messages {
		if m.Position == 0 {
			got[fmt.Sprintf("message %d", m.Attempt)]++
		}
	}
	want := map[string]int{"attempt 0": 3, "attempt 1": 3, "message 0": 3, "message 1": 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}
