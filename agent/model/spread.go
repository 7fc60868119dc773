package model

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"math"
	"slices"
	"time"
)

// Member is one of several endpoints behind one model.
type Member struct {
	// Name tells the endpoints of a model apart, such as its base URL; which
	// episodes go there follows from it.
	Name   string
	Model  Model    // the provider at this endpoint, without a limit around it
	Weight float64  // share of the episodes, beside the others'; 0: 1
	Limit  *Limiter // shared by all models that use the endpoint
}

type spread struct{ members []member }

type member struct {
	Member
	limited Model
}

// Spread is one model behind the endpoints of members, each with its limiter.
//
// An episode sticks to one endpoint, which has its prefix in its cache: by
// weighted rendezvous hashing, so that episodes stay where they are when an
// endpoint is added or removed. A call goes to the episode's next choice while
// the first one is down or asked to be left alone, or has failed the call
// before; see [Request.Failed]. An endpoint that is down gets one request after
// a pause, which finds out whether it still is; if all are, calls go on as if
// none were.
//
// The error of a failed try names its endpoint, and says whether another one
// can take the call at once. Spread panics without members.
func Spread(members []Member) Model {
	if len(members) == 0 {
		panic("model: a model spread over no endpoint")
	}
	s := &spread{members: make([]member, len(members))}
	for i, m := range members {
		m.Weight = cmp.Or(m.Weight, 1)
		s.members[i] = member{Member: m, limited: Limit(m.Model, m.Limit)}
	}
	return s
}

// Unwrap is the first endpoint's model: what they can do is alike.
func (s *spread) Unwrap() Model { return s.members[0].limited }

func (s *spread) Generate(ctx context.Context, req Request) (resp Response, err error) {
	if len(s.members) == 1 {
		return s.members[0].limited.Generate(ctx, req)
	}
	m := s.pick(&req, time.Now())
	resp, err = m.limited.Generate(ctx, req)
	if e := new(Error); errors.As(err, &e) {
		e.Endpoint = m.Name
		e.Elsewhere = e.Retryable && s.elsewhere(&req, m)
	}
	return resp, err
}

// pick is where a try goes: of the endpoints that are ready the one that has
// failed the call least often, and of these the episode's first choice.
func (s *spread) pick(req *Request, now time.Time) *member {
	var best *member
	least := math.MaxInt
	for _, m := range s.order(req) {
		if failed := count(req.Failed, m.Name); failed < least && m.Limit.open(now) {
			best, least = m, failed
		}
	}
	if best != nil {
		return best
	}
	return slices.MinFunc(s.order(req), func(a, b *member) int {
		return cmp.Compare(count(req.Failed, a.Name), count(req.Failed, b.Name))
	})
}

// elsewhere reports whether an endpoint besides failed is ready that has not
// failed the call yet.
func (s *spread) elsewhere(req *Request, failed *member) bool {
	return slices.ContainsFunc(s.members, func(m member) bool {
		return m.Name != failed.Name && !slices.Contains(req.Failed, m.Name) && m.Limit.ready(time.Now())
	})
}

func count(names []string, name string) (n int) {
	for _, each := range names {
		if each == name {
			n++
		}
	}
	return n
}

// order is the endpoints in the order in which the request's episode likes
// them.
func (s *spread) order(req *Request) []*member {
	key := req.CallID
	if req.Episode != nil {
		key = req.Episode.ID
	}
	scores := make([]float64, len(s.members))
	order := make([]*member, len(s.members))
	at := make([]int, len(s.members))
	for i := range s.members {
		at[i], scores[i] = i, s.members[i].score(key)
	}
	slices.SortFunc(at, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	for i, j := range at {
		order[i] = &s.members[j]
	}
	return order
}

// score is how much an episode likes the endpoint: the largest of a number of
// draws that is its weight.
func (m *member) score(key string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.Name + "\x00" + key)) // never fails
	return -m.Weight / math.Log(unit(mix(h.Sum64())))
}

// mix spreads what little a hash of similar texts differs in over all bits.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// unit is x as a number between 0 and 1, neither included.
func unit(x uint64) float64 { return (float64(x>>11) + 0.5) / (1 << 53) }
