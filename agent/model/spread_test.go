package model_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// farm is endpoints a, b, c, ... of which each counts what it gets and fails
// as fail says.
type farm struct {
	got     map[string]int
	seen    map[string]string // call id to the endpoint that answered it
	fail    map[string]error
	members []model.Member
}

func newFarm(weights ...float64) *farm {
	f := &farm{got: map[string]int{}, seen: map[string]string{}, fail: map[string]error{}}
	for i, w := range weights {
		name := string(rune('a' + i))
		f.members = append(f.members, model.Member{
			Name: name, Weight: w, Limit: model.NewLimiter(8, model.LimiterOptions{}),
			Model: generator(func(_ context.Context, req model.Request) (model.Response, error) {
				f.got[name]++
				if err := f.fail[name]; err != nil {
					return model.Response{}, err
				}
				f.seen[req.CallID] = name
				return reply(1), nil
			}),
		})
	}
	return f
}

// play calls n turns of each of so many episodes, one after the other.
func (f *farm) play(t *testing.T, m model.Model, episodes, turns int) {
	t.Helper()
	for e := range episodes {
		ep := &dataset.Episode{ID: fmt.Sprintf("episode-%d", e)}
		for n := range turns {
			if _, err := m.Generate(t.Context(), model.Request{CallID: model.CallID(ep, n), Episode: ep}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestSpreadByWeight keeps each episode at one endpoint, gives each its share,
// and moves only what it has to when one is added.
func TestSpreadByWeight(t *testing.T) {
	const episodes, turns = 3000, 3
	f := newFarm(1, 2, 0.5)
	f.play(t, model.Spread(f.members), episodes, turns)
	for i, want := range []float64{1 / 3.5, 2 / 3.5, 0.5 / 3.5} {
		name := f.members[i].Name
		if got := float64(f.got[name]) / (episodes * turns); math.Abs(got-want) > 0.03 {
			t.Errorf("endpoint %s got a share of %.3f, want %.3f", name, got, want)
		}
	}
	where := map[string]string{}
	for e := range episodes {
		ep := &dataset.Episode{ID: fmt.Sprintf("episode-%d", e)}
		first := f.seen[model.CallID(ep, 0)]
		where[ep.ID] = first
		for n := range turns {
			if at := f.seen[model.CallID(ep, n)]; at != first {
				t.Fatalf("turn %d of %s was at %s, the first at %s", n, ep.ID, at, first)
			}
		}
	}
	larger := newFarm(1, 2, 0.5, 1)
	larger.play(t, model.Spread(larger.members), episodes, 1)
	for id, before := range where {
		if after := larger.seen[id+"-0-0"]; after != before && after != "d" {
			t.Errorf("%s went from %s to %s though only d is new", id, before, after)
		}
	}
}

// TestSpreadFailsOver takes a failed try to another endpoint at once, leaves an
// endpoint alone that is down, and comes back when it is up.
func TestSpreadFailsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1, 1)
		m := model.Retry(model.Spread(f.members), model.RetryOptions{})
		f.fail["a"] = failed(model.ClassConnection, 0)
		begin := time.Now()
		f.play(t, m, 200, 1)
		if f.got["a"] != 3 || f.got["b"] != 200 || time.Since(begin) != 0 {
			t.Errorf("a got %d requests, b %d, after %v; want 3, 200 and no wait", f.got["a"], f.got["b"], time.Since(begin))
		}
		pass(time.Second)
		f.play(t, m, 200, 1)
		if f.got["a"] != 4 {
			t.Errorf("a got %d requests, want one more that finds out", f.got["a"])
		}
		delete(f.fail, "a")
		pass(2 * time.Second)
		f.play(t, m, 200, 1)
		if f.got["a"] < 50 {
			t.Errorf("a got %d requests, want its share again", f.got["a"])
		}
	})
}

// TestSpreadHeedsRetryAfter sends calls elsewhere while an endpoint wants to be
// left alone, and waits for it where there is no other.
func TestSpreadHeedsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1, 1)
		busy := failed(model.ClassRateLimit, 429)
		busy.RetryAfter = time.Minute
		f.fail["a"] = busy
		m := model.Retry(model.Spread(f.members), model.RetryOptions{})
		begin := time.Now()
		f.play(t, m, 100, 1)
		want := map[string]int{"a": 1, "b": 100}
		if diff := cmp.Diff(want, f.got); diff != "" || time.Since(begin) != 0 {
			t.Errorf("after %v, requests (-want +got):\n%s", time.Since(begin), diff)
		}
		delete(f.fail, "a")
		alone := model.Spread(f.members[:1])
		f.play(t, alone, 1, 1)
		if d := time.Since(begin); d != time.Minute {
			t.Errorf("waited %v for the only endpoint, want a minute", d)
		}
	})
}

// TestSpreadTriesOthersFirst goes through the endpoints before it comes back to
// one that has failed the call, and counts tries as without it.
func TestSpreadTriesOthersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1, 1, 1)
		for _, m := range f.members {
			f.fail[m.Name] = failed(model.ClassServer, 500)
		}
		m := model.Retry(model.Spread(f.members), model.RetryOptions{Tries: 6})
		resp, err := m.Generate(t.Context(), model.Request{CallID: "x-0-0", Episode: &dataset.Episode{ID: "x"}})
		wantClass(t, err, model.ClassServer)
		want := map[string]int{"a": 2, "b": 2, "c": 2}
		if diff := cmp.Diff(want, f.got); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if n := retries(resp); n != 6 {
			t.Errorf("%d failed tries on record, want 6", n)
		}
	})
}
