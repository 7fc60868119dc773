package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// slowOnce makes the first operation of a kind wait until release is closed;
// others go on meanwhile.
func slowOnce(fsys *memFS, kind, name string, release <-chan struct{}) {
	var once sync.Once
	fsys.before = func(op memOp) fault {
		if op.kind == kind && strings.Contains(op.name, name) {
			once.Do(func() {
				fsys.mu.Unlock()
				<-release
				fsys.mu.Lock()
			})
		}
		return fault{}
	}
}

// TestGroupCommit makes many callers wait on one slow sync: all that queued up
// meanwhile shares the next.
func TestGroupCommit(t *testing.T) {
	const callers = 40
	fsys := newMemFS()
	synctest.Test(t, func(t *testing.T) {
		s := mustCreate(t, crashDir, Options{FS: fsys})
		release := make(chan struct{})
		slowOnce(fsys, "sync", journalDir, release)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				late := []dataset.LateReward{{EpisodeID: sampleEpisode(i).ID, Reward: dataset.Reward{Name: "x"}}}
				if err := s.Rewards(context.Background(), late); err != nil {
					t.Error(err)
				}
			})
			if i == 0 {
				synctest.Wait() // the first one is in its sync
			}
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if got := fsys.syncs[journalDir]; got != 2 {
			t.Errorf("%d syncs for %d callers, want 2", got, callers)
		}
		mustClose(t, s)
	})
	if got := len(allRows(t, fsys, crashDir).Rewards); got != callers {
		t.Errorf("%d rewards, want %d", got, callers)
	}
}

// TestRotation writes a part at so many attempts, at so many bytes, and when
// the first row is old, also if nothing more is written.
func TestRotation(t *testing.T) {
	tests := []struct {
		name  string
		opts  Options
		wait  time.Duration
		parts int // before Close
	}{
		{"rows", Options{PartRows: 2}, 0, 2},
		{"bytes", Options{PartBytes: 1}, 0, 5},
		{"age", Options{PartAge: time.Minute}, time.Minute + time.Second, 1},
		{"not yet", Options{}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := newMemFS()
			tt.opts.FS = fsys
			synctest.Test(t, func(t *testing.T) {
				s := mustCreate(t, crashDir, tt.opts)
				for i := range 5 {
					mustWrite(t, s, sampleTrajectory(i, false))
					synctest.Wait()
				}
				time.Sleep(tt.wait) //nolint:forbidigo // in a bubble
				synctest.Wait()
				man, err := readManifest(fsys, crashDir)
				if err != nil || len(man.parts) != tt.parts {
					t.Errorf("%d parts, %v; want %d", len(man.parts), err, tt.parts)
				}
				mustClose(t, s)
			})
			if got := len(allRows(t, fsys, crashDir).Attempts); got != 5 {
				t.Errorf("%d attempts, want 5", got)
			}
		})
	}
}

// TestBackPressure: one batch may wait for the part writer, then Write blocks;
// calls go on.
func TestBackPressure(t *testing.T) {
	fsys := newMemFS()
	synctest.Test(t, func(t *testing.T) {
		s := mustCreate(t, crashDir, Options{FS: fsys, PartRows: 1})
		release := make(chan struct{})
		slowOnce(fsys, "create", tAttempts, release)
		done := 0
		go func() {
			for i := range 6 {
				if err := s.Write(context.Background(), []*dataset.Trajectory{sampleTrajectory(i, false)}); err != nil {
					t.Error(err)
				}
				done++
			}
		}()
		synctest.Wait()
		if done != 3 { // one is written, one waits, one fills
			t.Errorf("%d writes came through, want 3", done)
		}
		ep := sampleEpisode(9)
		start, _ := sampleCalls(&ep, 0)
		if err := s.Call(t.Context(), start); err != nil {
			t.Error(err)
		}
		close(release)
		synctest.Wait()
		if done != 6 {
			t.Errorf("%d writes came through after that, want 6", done)
		}
		mustClose(t, s)
	})
	if got := len(allRows(t, fsys, crashDir).Attempts); got != 7 {
		t.Errorf("%d attempts, want 6 and the one that never ended", got)
	}
}

// TestDiskFull fills the disk while a run is recorded.
func TestDiskFull(t *testing.T) {
	for _, where := range []string{journalDir, tMessages, manifestFile, "/"} {
		for _, space := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/space again %t", strings.Trim(where, "/"), space), func(t *testing.T) {
				fillMemory(t, where, space)
			})
		}
	}
}

// fillMemory fills the disk under files of a name after the first attempt, for
// 40 seconds or for good, and opens the run again with space.
func fillMemory(t *testing.T, where string, space bool) {
	t.Helper()
	const full = 40 * time.Second
	fsys := newMemFS()
	opts := Options{FS: fsys, PartRows: 2, DiskWait: time.Minute}
	acked := 0
	var first atomic.Bool // the first attempt is acknowledged
	synctest.Test(t, func(t *testing.T) {
		s := mustCreate(t, crashDir, opts)
		began := time.Now()
		fsys.before = func(op memOp) fault {
			grows := op.kind == "write" || op.kind == "create"
			if first.Load() && grows && strings.Contains(op.name, where) && (!space || time.Since(began) < full) {
				return fault{err: syscall.ENOSPC, half: true}
			}
			return fault{}
		}
		var err error
		for i := 0; i < 9 && err == nil; i++ {
			if err = s.Write(t.Context(), []*dataset.Trajectory{sampleTrajectory(i, false)}); err == nil {
				acked++
				first.Store(true)
				synctest.Wait()
			}
		}
		err = errors.Join(err, s.Close())
		waited := time.Since(began)
		switch {
		case space && err != nil:
			t.Errorf("error with space again: %v", err)
		case !space && !errors.Is(err, syscall.ENOSPC):
			t.Errorf("error = %v, want one of a full disk", err)
		case waited < full || waited > 2*opts.DiskWait+time.Second:
			t.Errorf("waited %v", waited)
		}
	})
	fsys.before = nil
	mustClose(t, mustOpen(t, crashDir, opts))
	if got := len(allRows(t, fsys, crashDir).Attempts); got < acked || space && got != 9 {
		t.Errorf("%d attempts, %d were acknowledged", got, acked)
	}
}
