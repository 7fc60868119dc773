package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/talaria-run/talaria/agent/model"
)

const (
	liveFile   = "live.json"
	writeLive  = 2 * time.Second
	liveIsGone = 15 * time.Second // a file that is older tells of a process that hangs
)

// liveReport is live.json: how things stand in the process that writes a run.
// Its JSON keeps its meaning between releases.
type liveReport struct {
	At        time.Time      `json:"at"`
	Done      int            `json:"done"`
	Total     int            `json:"total"` // 0: not known
	InFlight  int            `json:"in_flight"`
	PerSecond float64        `json:"per_second"` // episodes, lately
	ETA       float64        `json:"eta_s"`      // 0: not known
	Endpoints []endpointLive `json:"endpoints"`
}

type endpointLive struct {
	Endpoint string `json:"endpoint"` // its base URL, without a password
	model.LimiterState
}

// live tells how each endpoint's limiter stands, in the order of their
// addresses.
func (e endpoints) live() []endpointLive {
	all := make([]endpointLive, 0, len(e.byURL))
	for _, base := range slices.Sorted(maps.Keys(e.byURL)) {
		shown := base
		if u, err := url.Parse(base); err == nil {
			shown = u.Redacted()
		}
		all = append(all, endpointLive{shown, e.byURL[base].limiter.State()})
	}
	return all
}

// publishLive writes what report tells into dir every few seconds until stop
// is called, which removes it. What goes wrong is of no matter: the file is
// for who looks on.
func publishLive(dir string, report func() liveReport) (stop func()) {
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = os.Remove(filepath.Join(dir, liveFile)) }()
		ticker := time.NewTicker(writeLive)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				writeLiveFile(dir, report())
			case <-stopped:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stopped)
		<-done
	})
}

// writeLiveFile replaces the file at once, so that no reader sees half of it.
func writeLiveFile(dir string, r liveReport) {
	path := filepath.Join(dir, liveFile)
	if os.WriteFile(path+".new", encodeJSON(r), 0o600) != nil || os.Rename(path+".new", path) != nil {
		_ = os.Remove(path + ".new")
	}
}

// readLive is what the process that writes the run in dir told lately, nil if
// it did not.
func readLive(dir string, now time.Time) *liveReport {
	text, err := os.ReadFile(filepath.Join(dir, liveFile))
	if err != nil {
		return nil
	}
	r := new(liveReport)
	if json.Unmarshal(text, r) != nil || now.Sub(r.At) > liveIsGone {
		return nil
	}
	return r
}

// limitText is the limit in force and why, such as "64 (ceiling)", "12: 429",
// "paused 8s: Retry-After".
func limitText(s model.LimiterState) string {
	text := fmt.Sprintf("%d: %s", s.Limit, reasonText(s.Reason, s.Status))
	if s.Reason == model.ReasonCeiling {
		text = fmt.Sprintf("%d (ceiling)", s.Limit)
	}
	if s.Pause > 0 {
		text = fmt.Sprintf("paused %s: %s", pauseText(s.Pause), reasonText(s.PauseReason, s.Status))
	}
	if s.Down {
		text += ", down"
	}
	return text
}

func pauseText(d time.Duration) string {
	if d < time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func reasonText(r model.Reason, status int) string {
	switch r {
	case model.ReasonRefused:
		return strconv.Itoa(status)
	case model.ReasonStart:
		return "starting"
	case model.ReasonRetryAfter:
		return "Retry-After"
	case model.ReasonRate:
		return "limits per minute"
	case model.ReasonGrowing, model.ReasonTimeouts, model.ReasonLatency, model.ReasonCeiling:
		return string(r)
	}
	return string(r)
}

// text is an endpoint on one line.
func (e endpointLive) text() string {
	waiting := ""
	if e.Waiting > 0 {
		waiting = ", " + comma(e.Waiting) + " waiting"
	}
	limit := limitText(e.LimiterState)
	if e.Pause <= 0 {
		limit = "limit " + limit
	}
	return fmt.Sprintf("%s in flight%s, %s", comma(e.InFlight), waiting, limit)
}
