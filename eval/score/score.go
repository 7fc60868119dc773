// Package score judges answers without a model: it finds the answer in what an
// attempt left, and compares it with the task's target.
//
// [New] makes the scorers of a config; each is a scorer in the runner's sense.
// [Solution] is the way back: a reply that passes.
package score

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// Config is a scorer as configured.
type Config struct {
	Name          string // in [Registry]
	Extract       string // how the answer is found in the reply; see [ParseExtractor]
	TargetExtract string // how it is found in the task's target
	Chosen        bool   // its value becomes the attempt's reward
	// Decode decodes the scorer's own parameters strictly; nil: it has none.
	Decode func(into any) error
}

// Set is the scorers of a variant.
type Set struct {
	Scorers []*Scorer
	// Hash is the identity of what is scored how: another one means that old
	// trajectories want new rewards.
	Hash string
}

// Scorer judges answers by one rule. It is made by [New], read-only, and safe
// for concurrent use.
type Scorer struct {
	Name   string // of the rule
	Hash   string // identity of the rule with its extractors and parameters
	Chosen bool   // its value becomes the attempt's reward

	set    string // hash of the set that it belongs to
	answer Extractor
	target Extractor
	judge  Judge
}

// New makes the scorers of [Builtin]. Where none is marked chosen, the first
// one is.
func New(configs []Config) (*Set, error) { return Builtin().New(configs) }

// New makes scorers. It reports all that is wrong with configs at once.
func (r Registry) New(configs []Config) (*Set, error) {
	set := new(Set)
	var errs []error
	var hashes []string
	chosen := 0
	for i, c := range configs {
		s, err := r.scorer(c)
		if err != nil {
			errs = append(errs, fmt.Errorf("score[%d]: %w", i, err))
			continue
		}
		if c.Chosen {
			chosen++
		}
		set.Scorers = append(set.Scorers, s)
	}
	if chosen > 1 {
		errs = append(errs, errors.New("score: more than one scorer is marked chosen"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if chosen == 0 && len(set.Scorers) > 0 {
		set.Scorers[0].Chosen = true
	}
	for _, s := range set.Scorers {
		hashes = append(hashes, s.Hash, dataset.Text(s.Chosen))
	}
	set.Hash = dataset.ID("scorers", hashes...)
	for _, s := range set.Scorers {
		s.set = set.Hash
	}
	return set, nil
}

func (r Registry) scorer(c Config) (*Scorer, error) {
	construct, ok := r[c.Name]
	if !ok {
		return nil, fmt.Errorf("unknown scorer %q (known: %s)", c.Name, r.names())
	}
	answer, err := ParseExtractor(c.Extract)
	if err != nil {
		return nil, fmt.Errorf("%s: extract: %w", c.Name, err)
	}
	target, err := ParseExtractor(c.TargetExtract)
	if err != nil {
		return nil, fmt.Errorf("%s: target_extract: %w", c.Name, err)
	}
	decode := c.Decode
	if decode == nil {
		decode = func(any) error { return nil }
	}
	judge, err := construct(decode)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	return &Scorer{
		Name: c.Name, Chosen: c.Chosen, answer: answer, target: target, judge: judge,
		Hash: dataset.ID("scorer", codeRevision, c.Name, c.Extract, c.TargetExtract, dataset.Text(judge)),
	}, nil
}

// codeRevision is hashed into every scorer's identity. It rises when any rule
// or extractor judges an answer differently than before.
const codeRevision = "1"

// Score judges what tr left: its submitted answer, or the policy's last text
// where it submitted none. A reply without an answer is worth 0. An error
// means that the task cannot be judged: its target says nothing, or ctx is
// done.
func (s *Scorer) Score(ctx context.Context, t dataset.Task, tr *dataset.Trajectory) ([]dataset.Reward, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("scorer %s: %w", s.Name, context.Cause(ctx))
	}
	v, err := s.verdict(t, reply(tr), tr.ExitReason == dataset.ExitSubmitted)
	if err != nil {
		return nil, fmt.Errorf("scorer %s: task %q: %w", s.Name, t.ID, err)
	}
	return []dataset.Reward{s.reward(v)}, nil
}

func reply(tr *dataset.Trajectory) string {
	if tr.Answer != nil {
		return *tr.Answer
	}
	return tr.FinalText()
}

// verdict judges a reply. One that was submitted through a tool is the answer
// itself where the extractor, meant for running text, finds none in it.
func (s *Scorer) verdict(t dataset.Task, reply string, submitted bool) (Verdict, error) {
	target, found := s.target.Find(t.Target)
	if !found && !needsNoTarget(s.judge) {
		return Verdict{}, fmt.Errorf("no target: %s finds nothing in %s", s.target, clip(t.Target))
	}
	answer, found := s.answer.Find(reply)
	if !found && submitted {
		answer, found = Extractor{}.Find(reply)
	}
	if !found {
		// The target is judged all the same: it must not depend on the reply
		// whether a task can be judged.
		if _, err := s.judge.Judge("", target); err != nil {
			return Verdict{}, err
		}
		return Verdict{Explanation: fmt.Sprintf("no answer: %s finds nothing", s.answer)}, nil
	}
	return s.judge.Judge(answer, target)
}

func (s *Scorer) reward(v Verdict) dataset.Reward {
	value := 0.0
	if v.Passed {
		value = 1
	}
	const short = 8 // digits tell apart the configurations of one rule
	return dataset.Reward{
		Name: s.Name, Revision: s.Hash[:short], ScorerHash: s.set, Source: dataset.FromScorer,
		Value: &value, Passed: &v.Passed, Chosen: s.Chosen, Explanation: v.Explanation,
		CreatedAt: time.Now(),
	}
}
