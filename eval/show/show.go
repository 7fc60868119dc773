// Package show reads one trajectory from a run and prints it turn by turn.
//
// [Load] finds the episode, [Trajectory.Write] prints it.
package show

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/eval/query"
)

// Trajectory is everything recorded of one episode. Its JSON has the columns
// of the recorded tables under their names, times as RFC 3339.
type Trajectory struct {
	EpisodeID string `json:"episode_id"`
	// Current is the number of the attempt that counts: the highest whose
	// outcome is neither infra nor operator, else the highest.
	Current  int32          `json:"current"`
	Reward   *float64       `json:"reward"` // the latest chosen one of that attempt
	Passed   *bool          `json:"passed"`
	Task     *store.TaskRow `json:"task"`
	Attempts []Attempt      `json:"attempts"`
	// Children are the episodes that this one delegated, with all attempts.
	Children []Child `json:"children"`
}

// Attempt is one try with all its rows.
type Attempt struct {
	store.AttemptRow
	StartedAt Instant             `json:"started_at"`
	EndedAt   Instant             `json:"ended_at"`
	Messages  []Message           `json:"messages"`
	ToolCalls []store.ToolCallRow `json:"tool_calls"`
	Spans     []store.SpanRow     `json:"spans"`
	Rewards   []Reward            `json:"rewards"`
	Sequences []store.SequenceRow `json:"sequences"`
}

// Message is a row of messages.
type Message struct {
	store.MessageRow
	CreatedAt Instant `json:"created_at"`
}

// Reward is a row of rewards.
type Reward struct {
	store.RewardRow
	CreatedAt Instant `json:"created_at"`
}

// Child is an attempt at a delegated episode; it can be shown by its own id.
type Child struct {
	EpisodeID  string   `json:"episode_id"`
	Attempt    int32    `json:"attempt"`
	Outcome    string   `json:"outcome"`
	ExitReason string   `json:"exit_reason"`
	Reward     *float64 `json:"reward"`
}

// Instant is a time that rows hold as microseconds since the epoch and that
// JSON shows as RFC 3339.
type Instant struct{ time.Time }

// UnmarshalJSON reads microseconds since the epoch.
func (i *Instant) UnmarshalJSON(b []byte) error {
	var us int64
	if err := json.Unmarshal(b, &us); err != nil {
		return fmt.Errorf("reading a time: %w", err)
	}
	i.Time = time.UnixMicro(us).UTC()
	return nil
}

// NotFoundError says that no episode, or more than one, has an id that begins
// with Prefix.
type NotFoundError struct {
	Prefix     string
	Candidates []string // at most 10; empty if there is none
}

func (e *NotFoundError) Error() string {
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("no episode has an id that begins with %q; talaria query RUN 'SELECT episode_id FROM episodes' lists them", e.Prefix)
	}
	return fmt.Sprintf("more than one episode has an id that begins with %q: %s", e.Prefix, strings.Join(e.Candidates, ", "))
}

const maxCandidates = 10

// Load reads the episode whose id is, or alone begins with, the prefix.
func Load(ctx context.Context, db *query.DB, prefix string) (*Trajectory, error) {
	id, err := find(ctx, db, prefix)
	if err != nil {
		return nil, err
	}
	t := &Trajectory{EpisodeID: id}
	if err := t.loadAttempts(ctx, db); err != nil {
		return nil, fmt.Errorf("reading episode %s: %w", id, err)
	}
	if err := t.loadRest(ctx, db); err != nil {
		return nil, fmt.Errorf("reading episode %s: %w", id, err)
	}
	return t, nil
}

func find(ctx context.Context, db *query.DB, prefix string) (string, error) {
	type row struct {
		EpisodeID string `json:"episode_id"`
	}
	rows, err := query.Select[row](ctx, db,
		"SELECT DISTINCT episode_id FROM all_attempts WHERE starts_with(episode_id, ?) ORDER BY episode_id LIMIT ?",
		prefix, maxCandidates)
	if err != nil {
		return "", fmt.Errorf("looking for episode %s: %w", prefix, err)
	}
	failure := &NotFoundError{Prefix: prefix}
	for _, r := range rows {
		failure.Candidates = append(failure.Candidates, r.EpisodeID)
	}
	if len(rows) != 1 || prefix == "" {
		return "", failure
	}
	return rows[0].EpisodeID, nil
}

const ofEpisode = "WHERE episode_id = ? "

func (t *Trajectory) loadAttempts(ctx context.Context, db *query.DB) (err error) {
	t.Attempts, err = query.Recorded[Attempt](ctx, db, "all_attempts", ofEpisode+"ORDER BY attempt", t.EpisodeID)
	if err != nil {
		return err
	}
	messages, err := query.Recorded[Message](ctx, db, "all_messages", ofEpisode+"ORDER BY attempt, position", t.EpisodeID)
	if err != nil {
		return err
	}
	calls, err := query.Recorded[store.ToolCallRow](ctx, db, "all_tool_calls", ofEpisode+"ORDER BY attempt, position, call_index", t.EpisodeID)
	if err != nil {
		return err
	}
	spans, err := query.Recorded[store.SpanRow](ctx, db, "all_spans", ofEpisode+"ORDER BY attempt, start_us, span_id", t.EpisodeID)
	if err != nil {
		return err
	}
	rewards, err := query.Recorded[Reward](ctx, db, "all_rewards", ofEpisode+"ORDER BY attempt, created_at, name", t.EpisodeID)
	if err != nil {
		return err
	}
	sequences, err := query.Recorded[store.SequenceRow](ctx, db, "all_sequences", ofEpisode+"ORDER BY attempt, sequence", t.EpisodeID)
	if err != nil {
		return err
	}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		a.Messages = of(messages, a.Attempt, func(m Message) int32 { return m.Attempt })
		a.ToolCalls = of(calls, a.Attempt, func(c store.ToolCallRow) int32 { return c.Attempt })
		a.Spans = of(spans, a.Attempt, func(s store.SpanRow) int32 { return s.Attempt })
		a.Rewards = of(rewards, a.Attempt, func(r Reward) int32 { return r.Attempt })
		a.Sequences = of(sequences, a.Attempt, func(s store.SequenceRow) int32 { return s.Attempt })
	}
	t.Current = current(t.Attempts)
	return nil
}

// of are the rows of one attempt.
func of[T any](rows []T, attempt int32, number func(T) int32) []T {
	own := []T{}
	for _, r := range rows {
		if number(r) == attempt {
			own = append(own, r)
		}
	}
	return own
}

// current is the number of the attempt that counts, of attempts in order.
func current(attempts []Attempt) int32 {
	number := attempts[len(attempts)-1].Attempt
	for _, a := range attempts {
		if o := dataset.Outcome(a.Outcome); o != dataset.OutcomeInfra && o != dataset.OutcomeOperator {
			number = a.Attempt
		}
	}
	return number
}

func (t *Trajectory) loadRest(ctx context.Context, db *query.DB) error {
	type score struct {
		Reward *float64 `json:"reward"`
		Passed *bool    `json:"passed"`
	}
	scores, err := query.Select[score](ctx, db,
		"SELECT reward, passed FROM _scores "+ofEpisode+"AND attempt = ?", t.EpisodeID, t.Current)
	if err != nil {
		return err
	}
	for _, s := range scores {
		t.Reward, t.Passed = s.Reward, s.Passed
	}
	a := t.attempt(t.Current)
	tasks, err := query.Recorded[store.TaskRow](ctx, db, "tasks",
		"WHERE run_id = ? AND task_id = ? AND occurrence = ?", a.RunID, a.TaskID, a.Occurrence)
	if err != nil {
		return err
	}
	if len(tasks) > 0 {
		t.Task = &tasks[0]
	}
	t.Children, err = query.Select[Child](ctx, db,
		`SELECT a.episode_id, a.attempt, a.outcome, a.exit_reason, s.reward
		FROM all_attempts a JOIN _scores s USING (run_id, episode_id, attempt)
		WHERE a.parent_episode_id = ? ORDER BY a.attempt, a.started_at, a.episode_id`, t.EpisodeID)
	if t.Children == nil {
		t.Children = []Child{}
	}
	return err
}

// attempt is the attempt of that number.
func (t *Trajectory) attempt(number int32) *Attempt {
	for i := range t.Attempts {
		if t.Attempts[i].Attempt == number {
			return &t.Attempts[i]
		}
	}
	panic("show: an episode without its current attempt")
}
