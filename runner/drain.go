package runner

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// What may be handed over and not yet acknowledged: beyond it workers wait, so
// that a slow disk fills no memory.
const (
	maxUnacked      = 256
	maxUnackedBytes = 64 << 20
)

// record is a finished attempt on its way to the sink.
type record struct {
	tr         *dataset.Trajectory
	scorerHash string
	variant    int
	outcome    dataset.Outcome
	last       bool // the episode's last attempt in this invocation
	ended      bool // and the episode has ended with it
	bytes      int64
}

func newRecord(tr *dataset.Trajectory, cell *Cell, variant int) record {
	return record{
		tr: tr, scorerHash: cell.Variant.ScorerHash, variant: variant,
		outcome: tr.Outcome(), bytes: min(sizeOf(tr), maxUnackedBytes),
	}
}

// handover is the way from the workers to the drain.
type handover struct {
	records chan record // workers send, the drain receives, Run closes it when all workers have returned
	count   *semaphore.Weighted
	bytes   *semaphore.Weighted
}

func newHandover() *handover {
	return &handover{
		records: make(chan record, maxUnacked),
		count:   semaphore.NewWeighted(maxUnacked),
		bytes:   semaphore.NewWeighted(maxUnackedBytes),
	}
}

// over hands a record over and waits while too much is unacknowledged. It waits
// for nothing but the drain, which always receives: what has finished is
// recorded even when the work is being cut off.
func (h *handover) over(ctx context.Context, rec record) {
	ctx = context.WithoutCancel(ctx)
	_ = h.count.Acquire(ctx, 1) // fails only with ctx
	_ = h.bytes.Acquire(ctx, rec.bytes)
	h.records <- rec
}

func (h *handover) acknowledge(batch []record) {
	for _, rec := range batch {
		h.bytes.Release(rec.bytes)
	}
	h.count.Release(int64(len(batch)))
}

// queued appends to batch what is queued by now.
func (h *handover) queued(batch []record) []record {
	for {
		select {
		case rec, ok := <-h.records:
			if !ok {
				return batch
			}
			batch = append(batch, rec)
		default:
			return batch
		}
	}
}

// drain writes what workers hand over, all that is queued at a time, until they
// have ended. On its first error it calls abort, and goes on receiving, so that
// no worker blocks: those records are lost to this run and count as not done.
func (r *Runner) drain(ctx context.Context, abort context.CancelCauseFunc) error {
	var failed error
	batch := make([]record, 0, maxUnacked)
	for rec := range r.hand.records {
		batch = r.hand.queued(append(batch[:0], rec))
		if failed == nil {
			if failed = r.write(ctx, batch); failed != nil {
				abort(failed)
			}
		}
		r.hand.acknowledge(batch)
		clear(batch)
	}
	return failed
}

// write records a batch. Only then do its attempts count.
func (r *Runner) write(ctx context.Context, batch []record) error {
	trs := make([]*dataset.Trajectory, len(batch))
	for i, rec := range batch {
		trs[i] = rec.tr
	}
	if err := r.sink.Write(ctx, trs); err != nil {
		return fmt.Errorf("recording %d attempts: %w", len(trs), err)
	}
	for _, rec := range batch {
		if err := r.index(rec.tr, rec.scorerHash); err != nil {
			return err
		}
	}
	r.meter.acknowledge(batch)
	return nil
}

// index takes an attempt and its children into the index.
func (r *Runner) index(tr *dataset.Trajectory, scorerHash string) error {
	if err := r.opts.Index.Add(store.AttemptOf(tr, scorerHash)); err != nil {
		return fmt.Errorf("indexing attempt %d: %w", tr.Episode.Attempt, err)
	}
	for _, child := range tr.Children {
		if err := r.index(child, scorerHash); err != nil {
			return err
		}
	}
	return nil
}

// Rough sizes in memory of what is not text.
const (
	trajectoryBytes = 2 << 10
	messageBytes    = 300
	spanBytes       = 300
	tokenBytes      = 9 // an id, a logprob, a mask
)

// sizeOf estimates the memory that tr holds, cheaply.
func sizeOf(tr *dataset.Trajectory) int64 {
	n := trajectoryBytes + len(tr.Spans)*spanBytes
	for i := range tr.Messages {
		m := &tr.Messages[i]
		n += messageBytes + len(m.Content) + len(m.Reasoning) + len(m.ReasoningSignature) + len(m.Parts)
		for j := range m.ToolCalls {
			n += messageBytes + len(m.ToolCalls[j].Arguments) + len(m.ToolCalls[j].Coerced)
		}
	}
	for i := range tr.Rewards {
		n += messageBytes + len(tr.Rewards[i].Raw) + len(tr.Rewards[i].Explanation)
	}
	for i := range tr.Sequences {
		n += len(tr.Sequences[i].TokenIDs) * tokenBytes
	}
	total := int64(n)
	for _, child := range tr.Children {
		total += sizeOf(child)
	}
	return total
}
