package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
)

func TestLimitText(t *testing.T) {
	for _, tt := range []struct {
		state model.LimiterState
		want  string
	}{
		{model.LimiterState{Limit: 64, Ceiling: 64, Reason: model.ReasonCeiling}, "64 (ceiling)"},
		{model.LimiterState{Limit: 12, Reason: model.ReasonRefused, Status: 429}, "12: 429"},
		{model.LimiterState{Limit: 7, Reason: model.ReasonLatency, Status: 503}, "7: latency"},
		{model.LimiterState{Limit: 4, Reason: model.ReasonStart}, "4: starting"},
		{model.LimiterState{Limit: 64, Reason: model.ReasonCeiling, Down: true}, "64 (ceiling), down"},
		{model.LimiterState{
			Limit: 9, Reason: model.ReasonRefused, Status: 503, Pause: 8200 * time.Millisecond, PauseReason: model.ReasonRetryAfter,
		}, "paused 8s: Retry-After"},
		{model.LimiterState{
			Limit: 1, Reason: model.ReasonRefused, Status: 503, Pause: 250 * time.Millisecond, PauseReason: model.ReasonRefused,
		}, "paused 250ms: 503"},
		{model.LimiterState{
			Limit: 64, Reason: model.ReasonCeiling, Pause: time.Second, PauseReason: model.ReasonRate,
		}, "paused 1s: limits per minute"},
	} {
		if got := limitText(tt.state); got != tt.want {
			t.Errorf("limitText(%+v) = %q, want %q", tt.state, got, tt.want)
		}
	}
}

// TestLive publishes, is replaced, goes stale and is removed; a directory that
// takes no file is no error.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		done := 0
		stop := publishLive(dir, func() liveReport {
			done++
			return liveReport{At: time.Now().UTC(), Done: done}
		})
		nowhere := publishLive(filepath.Join(dir, "none"), func() liveReport { return liveReport{} })
		time.Sleep(2*writeLive + time.Millisecond)
		synctest.Wait()
		want := &liveReport{At: time.Now().UTC().Add(-time.Millisecond), Done: 2}
		if diff := cmp.Diff(want, readLive(dir, time.Now())); diff != "" {
			t.Errorf("live.json (-want +got):\n%s", diff)
		}
		if r := readLive(dir, time.Now().Add(time.Minute)); r != nil {
			t.Errorf("a stale file was read: %+v", r)
		}
		stop()
		nowhere()
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%d files are left", len(left))
		}
	})
}
