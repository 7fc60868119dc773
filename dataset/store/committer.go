package store

import (
	"log/slog"
	"time"
)

// request is what one caller waits for: records that are acknowledged
// together. done has room for the one answer, so that the committer never
// waits for a caller who has gone.
type request struct {
	records []*record
	done    chan error
}

// committer is the one goroutine that writes the journal. It takes whatever is
// queued, writes it, syncs once if any of it has rows, and acknowledges all.
// When a batch is full it goes on with a new segment and hands the rows to the
// goroutine that writes parts.
type committer struct {
	log      *slog.Logger
	opts     Options
	rows     chan *request // from Write and Rewards
	calls    chan *request // from Call
	stop     chan struct{} // closed by Close
	parts    chan *batch   // to the part writer; one batch may wait; closed at the end
	taken    chan struct{} // from the part writer: it took a batch; room for one
	partErr  chan error    // from the part writer: it gave up; room for one
	orphaned func(*inflight) ([]record, error)

	journal journal
	batch   *batch
	age     *time.Timer // runs while the batch has rows
	due     bool        // the batch is to be handed over
	failed  error       // after which nothing is written any more
}

// Bounds of what is committed at once.
const (
	maxCommitRecords = 1024
	maxCommitBytes   = 16 << 20
)

func (c *committer) run() {
	defer close(c.parts)
	c.age = time.NewTimer(time.Hour)
	c.age.Stop()
	defer c.age.Stop()
	for {
		c.handOver()
		select {
		case r := <-c.acceptRows():
			c.commit(r)
		case r := <-c.calls:
			c.commit(r)
		case <-c.age.C:
			c.due = true
		case <-c.taken: // so that handOver looks again
		case err := <-c.partErr:
			c.fail(err)
		case <-c.stop:
			c.finish()
			return
		}
	}
}

// acceptRows is nil, which blocks Write, while a full batch cannot be handed
// over: memory holds two batches and one that fills.
func (c *committer) acceptRows() <-chan *request {
	if c.full() && c.failed == nil {
		return nil
	}
	return c.rows
}

func (c *committer) full() bool {
	return c.batch.bytes >= int(c.opts.PartBytes) || c.batch.count >= c.opts.PartRows
}

// commit writes a request and all that is queued behind it.
func (c *committer) commit(first *request) {
	if c.failed != nil {
		first.done <- c.failed
		return
	}
	requests := c.gather(first)
	var records []*record
	sync := false
	for _, r := range requests {
		records = append(records, r.records...)
		for _, rec := range r.records {
			sync = sync || rec.kind.hasRows()
		}
	}
	err := c.persist(records, sync)
	if err != nil {
		c.fail(err)
	} else {
		c.book(records)
	}
	for _, r := range requests {
		r.done <- err
	}
}

// gather takes what is queued, without waiting.
func (c *committer) gather(first *request) []*request {
	requests := []*request{first}
	records, bytes := len(first.records), size(first)
	for records < maxCommitRecords && bytes < maxCommitBytes {
		var next *request
		select {
		case next = <-c.acceptRows():
		case next = <-c.calls:
		default:
			return requests
		}
		requests = append(requests, next)
		records += len(next.records)
		bytes += size(next)
	}
	return requests
}

func size(r *request) int {
	n := 0
	for _, rec := range r.records {
		n += len(rec.body)
	}
	return n
}

// persist writes records, waiting for space where the disk is full. After each
// error it goes on in a new segment.
func (c *committer) persist(records []*record, sync bool) error {
	return insist(c.log, c.opts.DiskWait, "journal", func() error {
		err := c.journal.write(records, sync)
		if err != nil {
			c.journal.abandon()
		}
		return err
	})
}

// book takes acknowledged records into the batch and the calls in flight.
func (c *committer) book(records []*record) {
	for _, r := range records {
		if !r.kind.hasRows() {
			c.journal.calls.note(r.call, r.kind)
			continue
		}
		if len(c.batch.rows) == 0 {
			c.age.Reset(c.opts.PartAge)
		}
		c.batch.add(r)
		c.journal.calls.ended(r.rows)
	}
}

// handOver gives a batch that is full or old to the part writer, if that has
// room. The next segment begins first, with the calls in flight, and is
// durable before the old one's rows can be committed: the commit allows the
// old segment to go.
func (c *committer) handOver() {
	c.due = c.due || c.full()
	if !c.due || c.failed != nil || len(c.parts) > 0 || len(c.batch.rows) == 0 {
		return
	}
	full := c.batch
	full.number = c.journal.number
	c.closeSegment()
	if len(c.journal.calls.attempts) > 0 {
		if err := c.persist(nil, true); err != nil {
			c.fail(err)
			return
		}
	}
	c.batch, c.due = &batch{}, false
	c.age.Stop()
	c.parts <- full // there is room: nobody else sends
}

func (c *committer) closeSegment() {
	if err := c.journal.close(); err != nil {
		c.log.Warn("closing a journal segment; its records were synced before", slog.Any("error", err))
	}
}

func (c *committer) fail(err error) {
	if c.failed == nil {
		c.failed = err
		c.log.Error("recording stopped; what was acknowledged is in the journal", slog.Any("error", err))
	}
}

// finish commits what is queued, writes the rows of attempts that never ended,
// and hands the last batch over.
func (c *committer) finish() {
	c.drain()
	if c.failed == nil {
		if err := c.buryOrphans(); err != nil {
			c.fail(err)
		}
	}
	last := c.batch
	last.number = c.journal.number
	c.closeSegment()
	if c.failed == nil && len(last.rows) > 0 {
		c.parts <- last
	}
}

func (c *committer) drain() {
	for {
		select {
		case r := <-c.rows:
			c.commit(r)
		case r := <-c.calls:
			c.commit(r)
		default:
			return
		}
	}
}

// buryOrphans records attempts whose calls are known and that nobody will end.
func (c *committer) buryOrphans() error {
	if len(c.journal.calls.attempts) == 0 {
		return nil
	}
	orphans, err := c.orphaned(&c.journal.calls)
	if err != nil || len(orphans) == 0 {
		return err
	}
	records := make([]*record, len(orphans))
	for i := range orphans {
		records[i] = &orphans[i]
	}
	if err := c.persist(records, true); err != nil {
		return err
	}
	c.book(records)
	return nil
}
