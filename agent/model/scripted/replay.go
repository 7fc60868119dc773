package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// Replay holds recorded answers for scripted/replay. It is read-only and safe
// for concurrent use.
type Replay struct {
	column  string
	byID    map[string][]recorded // rows with a mapped id
	byInput map[string][]recorded // the others
}

// recorded is what one row holds: an answer, or the replies of a conversation.
type recorded struct {
	kind    kind
	answer  string
	replies []dataset.Message
}

type kind int

const (
	missing kind = iota // the row has no value
	answer
	conversation
)

// NewReplay reads recorded answers: rows that are mapped like the tasks, and
// the column that holds the answer, as [dataset.Lookup] finds it in
// [dataset.Task.Row]. A value is text, which is a whole answer, or a list of OpenAI
// messages, whose assistant messages are replied in order.
//
// A row belongs to the task with its id, where it has a mapped one, else with
// its input: the n-th row of a task is its sample n, whichever occurrence of
// the task asks. All rows are held in memory.
func NewReplay(rows iter.Seq2[dataset.Task, error], column string) (*Replay, error) {
	r := &Replay{column: column, byID: map[string][]recorded{}, byInput: map[string][]recorded{}}
	n, filled := 0, 0
	var columns []string
	for t, err := range rows {
		if err != nil {
			return nil, fmt.Errorf("reading recorded answers: %w", err)
		}
		if n++; n == 1 {
			columns = slices.Sorted(maps.Keys(t.Row))
		}
		rec, err := read(t.Row, column)
		if err != nil {
			return nil, fmt.Errorf("reading recorded answers: row %d, task %q: %w", n, t.ID, err)
		}
		if rec.kind != missing {
			filled++
		}
		r.add(&t, rec)
	}
	switch {
	case n == 0:
		return nil, errors.New("reading recorded answers: there are no rows")
	case filled == 0:
		return nil, fmt.Errorf("reading recorded answers: no row has column %q; the first row has %s", column, strings.Join(columns, ", "))
	}
	return r, nil
}

func (r *Replay) add(t *dataset.Task, rec recorded) {
	if t.ID != t.Hash { // a mapped id
		r.byID[t.ID] = append(r.byID[t.ID], rec)
		return
	}
	r.byInput[t.Input] = append(r.byInput[t.Input], rec)
}

// rows are what was recorded of a task.
func (r *Replay) rows(t *dataset.Task) []recorded {
	if rows, ok := r.byID[t.ID]; ok {
		return rows
	}
	return r.byInput[t.Input]
}

// reply is what the episode's record says after turn replies. The lack of a
// record is the task's fault.
func (r *Replay) reply(ep *dataset.Episode, turn int) (dataset.Message, error) {
	rows := r.rows(&ep.Task)
	if ep.Sample >= len(rows) {
		return dataset.Message{}, r.fault(ep, fmt.Sprintf("has %d recorded answers: record more, lower samples, or drop the task", len(rows)))
	}
	rec := rows[ep.Sample]
	switch {
	case rec.kind == missing:
		return dataset.Message{}, r.fault(ep, fmt.Sprintf("its recorded row has no column %q: name another one, or drop the task", r.column))
	case rec.kind == answer:
		return say(rec.answer), nil
	case turn >= len(rec.replies):
		return dataset.Message{}, r.fault(ep, fmt.Sprintf("the recorded conversation ends after %d replies and the episode goes on: tools or env differ from the recorded ones", len(rec.replies)))
	}
	return rec.replies[turn], nil
}

func (r *Replay) fault(ep *dataset.Episode, what string) error {
	return fmt.Errorf("%w: task %q, sample %d: %s", dataset.ErrTask, ep.Task.ID, ep.Sample, what)
}

// read reads a row's value at column.
func read(row map[string]any, column string) (recorded, error) {
	v, ok := dataset.Lookup(row, column)
	if !ok || v == nil {
		return recorded{}, nil
	}
	list, isList := v.([]any)
	if !isList {
		return recorded{kind: answer, answer: dataset.Text(v)}, nil
	}
	replies, err := assistantMessages(list)
	if err != nil {
		return recorded{}, fmt.Errorf("column %q: %w", column, err)
	}
	return recorded{kind: conversation, replies: replies}, nil
}

// recordedMessage is an OpenAI message as far as it is replied.
type recordedMessage struct {
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	ReasoningContent string          `json:"reasoning_content"`
	ToolCalls        []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// assistantMessages picks the replies out of a conversation.
func assistantMessages(list []any) ([]dataset.Message, error) {
	var replies []dataset.Message
	for i, v := range list {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		var m recordedMessage
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, fmt.Errorf("message %d is no OpenAI message: %w", i, err)
		}
		switch dataset.Role(m.Role) {
		case dataset.Assistant:
			replies = append(replies, m.message())
		case dataset.System, dataset.User, dataset.ToolRole, "developer", "function":
		default:
			return nil, fmt.Errorf("message %d has role %q", i, m.Role)
		}
	}
	return replies, nil
}

func (m *recordedMessage) message() dataset.Message {
	msg := dataset.Message{Reasoning: m.ReasoningContent, FinishReason: model.FinishStop}
	msg.Content, msg.Parts = content(m.Content)
	for _, c := range m.ToolCalls {
		arguments, _ := content(c.Function.Arguments)
		if arguments == "" {
			arguments = string(c.Function.Arguments)
		}
		msg.ToolCalls = append(msg.ToolCalls, dataset.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: arguments})
		msg.FinishReason = model.FinishToolCalls
	}
	return msg
}

// content is a text, or a list of parts with their text joined.
func content(raw json.RawMessage) (string, json.RawMessage) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", nil
	}
	var joined strings.Builder
	for _, p := range parts {
		joined.WriteString(p.Text)
	}
	return joined.String(), raw
}
