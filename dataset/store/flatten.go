package store

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/talaria-run/talaria/dataset"
)

// flattener turns trajectories into rows. It is immutable and safe for
// concurrent use.
type flattener struct {
	clean    cleaner
	runID    string
	variants map[string]*variant
}

// variant is what attempts of one variant have in common, as columns.
type variant struct {
	dataset.Variant
	params, extra           string
	tags, toolsets, tools   []string
	temperature, topP       *float64
	maxTokens               *int32
	scorerHash, configHash  string
	env, agent, prov, model string
}

func newFlattener(run Run, opts Options) *flattener {
	f := &flattener{clean: cleaner{mask: opts.Mask}, runID: run.RunID, variants: map[string]*variant{}}
	for _, v := range run.Variants {
		f.variants[v.Hash] = f.variant(v, run.ConfigHash)
	}
	for hash, v := range opts.Variants {
		f.variants[hash] = f.variant(v, run.ConfigHash)
	}
	return f
}

func (f *flattener) variant(v dataset.Variant, configHash string) *variant {
	c := f.clean
	if v.ConfigHash != "" {
		configHash = v.ConfigHash
	}
	return &variant{
		Variant:     v,
		params:      c.object(v.Params),
		extra:       c.object(v.Sampling.Extra),
		tags:        c.list(v.Tags),
		toolsets:    c.list(v.Toolsets),
		tools:       c.list(v.Tools),
		temperature: dataset.Finite(v.Sampling.Temperature),
		topP:        dataset.Finite(v.Sampling.TopP),
		maxTokens:   int32Of(v.Sampling.MaxTokens),
		scorerHash:  c.text(v.ScorerHash),
		configHash:  c.text(configHash),
		env:         c.text(v.Env),
		agent:       c.text(v.Agent),
		prov:        c.text(v.Provider),
		model:       c.text(v.Model),
	}
}

// variantOf is the variant of an episode; one that nobody declared has only
// its name.
func (f *flattener) variantOf(ep dataset.Episode) *variant {
	if v, ok := f.variants[ep.VariantHash]; ok {
		return v
	}
	return f.variant(dataset.Variant{Name: ep.Variant, Hash: ep.VariantHash}, "")
}

// together is f for rows that are kept and let go together.
func (f *flattener) together() *flattener {
	g := *f
	g.clean.texts = new(texts)
	return &g
}

// trajectory appends the rows of an attempt and of its children.
func (f *flattener) trajectory(rows *Rows, tr *dataset.Trajectory) {
	v := f.variantOf(tr.Episode)
	f.messages(rows, tr)
	f.spans(rows, tr)
	for i := range tr.Rewards {
		rows.Rewards = append(rows.Rewards, f.ownReward(tr, v, tr.Rewards[i]))
	}
	quarantined := f.sequences(rows, tr, v)
	a := f.attempt(tr, v)
	if quarantined && !slices.Contains(a.Flags, dataset.FlagQuarantined) {
		a.Flags = append(a.Flags, dataset.FlagQuarantined)
	}
	rows.Attempts = append(rows.Attempts, a)
	for _, child := range tr.Children {
		f.trajectory(rows, child)
	}
}

func (f *flattener) attempt(tr *dataset.Trajectory, v *variant) AttemptRow {
	a := AttemptRow{
		RunID: f.runID, EpisodeID: tr.Episode.ID, Attempt: int32Clamp(tr.Episode.Attempt),
		ParentEpisodeID: f.clean.opt(tr.ParentEpisodeID), ReusedFrom: f.clean.opt(tr.ReusedFrom),
	}
	f.identity(&a, tr.Episode, v)
	f.ending(&a, tr)
	f.counts(&a, tr)
	a.QueuedMS, a.SetupMS, a.ModelMS = millis(tr.Queued), millis(tr.Setup), millis(tr.Model)
	a.ThrottleMS, a.ToolMS, a.ScoreMS = millis(tr.Throttle), millis(tr.Tool), millis(tr.Score)
	a.WorkingMS, a.TotalMS = millis(tr.Working), millis(tr.EndedAt.Sub(tr.StartedAt))
	a.StartedAt, a.EndedAt = micros(tr.StartedAt), micros(tr.EndedAt)
	a.SandboxBackend, a.SandboxImage = f.clean.opt(tr.SandboxBackend), f.clean.opt(tr.SandboxImage)
	a.SandboxEnforced = f.clean.list(tr.SandboxEnforced)
	a.Extra = f.clean.object(extraOf(tr))
	return a
}

// identity sets what is known before the attempt starts.
func (f *flattener) identity(a *AttemptRow, ep dataset.Episode, v *variant) {
	c := f.clean
	a.TaskID, a.TaskHash, a.Occurrence = c.text(ep.Task.ID), c.text(ep.Task.Hash), int32Clamp(ep.Task.Occurrence)
	a.Dataset, a.Split = c.text(ep.Task.Dataset), c.opt(ep.Task.Split)
	a.GroupID, a.Sample, a.Epoch = ep.GroupID, int32Clamp(ep.Sample), int32Clamp(ep.Epoch)
	a.Seed = ep.Seed
	a.Variant, a.VariantHash, a.VariantParams = c.text(ep.Variant), c.text(ep.VariantHash), v.params
	a.ScorerHash, a.ConfigHash, a.ContextHash = v.scorerHash, v.configHash, c.text(v.ContextHash)
	a.Env, a.Agent, a.Provider, a.Model = v.env, v.agent, v.prov, v.model
	a.Temperature, a.TopP, a.MaxTokens, a.SamplingExtra = v.temperature, v.topP, v.maxTokens, v.extra
	a.Tags, a.Toolsets, a.Tools, a.ToolsetsDrawn = v.tags, v.toolsets, v.tools, []string{}
	a.PromptHash, a.ToolsHash, a.CodeVersion = c.text(v.PromptHash), c.text(v.ToolsHash), c.text(v.CodeVersion)
}

// ending sets how the attempt ended and what it is worth.
func (f *flattener) ending(a *AttemptRow, tr *dataset.Trajectory) {
	c := f.clean
	a.Outcome, a.ExitReason = string(tr.Outcome()), c.text(string(tr.ExitReason))
	a.Truncated = tr.ExitReason.Truncated()
	a.ErrorClass, a.Error = c.opt(tr.ErrorClass), c.opt(tr.Error)
	a.Flags = c.list(tr.Flags)
	a.Reward, a.Passed = scalar(tr)
	a.RewardRule, a.PassRule = c.text(tr.RewardRule), c.text(tr.PassRule)
	a.Answer = c.ptr(tr.Answer)
	a.ModelServed, a.Fingerprints, a.Upstream = c.list(tr.ModelsServed), c.list(tr.Fingerprints), c.list(tr.Upstream)
}

// scalar is the attempt's reward. A pass that rests on a value that is no
// number is none.
func scalar(tr *dataset.Trajectory) (reward *float64, passed *bool) {
	reward = dataset.Finite(tr.Reward)
	if reward == nil && tr.Reward != nil {
		return nil, nil
	}
	return reward, tr.Passed
}

// lostKey is the member of the column extra that bounds what the unreported
// calls of an attempt used.
const lostKey = "unreported_at_most"

// extraOf is an attempt's extra with that bound, where there is one.
func extraOf(tr *dataset.Trajectory) map[string]any {
	lost := tr.Books.Lost
	if lost == (dataset.Spend{}) {
		return tr.Extra
	}
	extra := maps.Clone(tr.Extra)
	if extra == nil {
		extra = map[string]any{}
	}
	extra[lostKey] = map[string]any{"tokens": lost.Tokens, "nanousd": lost.NanoUSD}
	return extra
}

// lostIn is the bound in a column extra.
func lostIn(extra string) dataset.Spend {
	var e struct {
		Lost dataset.Spend `json:"unreported_at_most"`
	}
	if err := json.Unmarshal([]byte(extra), &e); err != nil {
		return dataset.Spend{} // not an object of ours: nothing is known
	}
	return dataset.Spend{NanoUSD: max(e.Lost.NanoUSD, 0), Tokens: max(e.Lost.Tokens, 0)}
}

// Cost statuses of an attempt.
const (
	costKnown   = "known"
	costPartial = "partial" // some calls are unpriced or unreported
	costUnknown = "unknown" // nothing is known
)

func (f *flattener) counts(a *AttemptRow, tr *dataset.Trajectory) {
	a.Turns = int32Clamp(tr.Turns())
	for i := range tr.Messages {
		m := &tr.Messages[i]
		a.ToolCallCount += int32Clamp(len(m.ToolCalls))
		for j := range m.ToolCalls {
			a.ToolErrors += int32Clamp(bit(m.ToolCalls[j].IsError, 1))
		}
		a.Injected += int32Clamp(bit(m.InjectedBy != "", 1))
	}
	a.DiscardedGenerations = int32Clamp(tr.DiscardedGenerations)
	b := &tr.Books
	a.Requests = int32Clamp(b.Requests)
	a.InputTokens, a.CacheReadTokens = b.Usage.Input, b.Usage.CacheRead
	a.CacheWriteTokens, a.OutputTokens = b.Usage.CacheWrite, b.Usage.Output
	a.ReasoningTokens = b.Usage.Reasoning
	a.CostNanoUSD, a.CostKnownNanoUSD = b.Cost(), b.CostKnown
	a.UnpricedCalls, a.UnreportedCalls = int32Clamp(b.Unpriced), int32Clamp(b.Unreported)
	a.CostStatus, a.PriceVersion = costStatus(b), f.clean.text(tr.PriceVersion)
	a.AuxInputTokens = b.Aux.Input + b.Aux.CacheRead + b.Aux.CacheWrite
	a.AuxOutputTokens, a.AuxCostNanoUSD = b.Aux.Output, b.AuxCost
}

func costStatus(b *dataset.Books) string {
	switch {
	case b.Cost() != nil:
		return costKnown
	case b.CostKnown != 0:
		return costPartial
	}
	return costUnknown
}
