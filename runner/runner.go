package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// runTimeGrace is how long an attempt in flight may go on after limits.run.time.
// Its next model call is refused at once.
const runTimeGrace = 10 * time.Second

// Runner runs one plan, once.
type Runner struct {
	plan      Plan
	sink      Sink
	opts      Options
	variantOf map[string]int // variant hash to index in plan.Cells

	grader  *grader
	hand    *handover
	halts   *halts
	retries *retries
	meter   *meter
	log     *attemptLog
}

// New returns a Runner of plan that records to sink. It refuses a plan that has
// nothing to run or two variants of one identity.
func New(plan Plan, sink Sink, opts Options) (*Runner, error) {
	if sink == nil {
		return nil, errors.New("runner has no sink")
	}
	if err := errors.Join(plan.validate(), opts.validate()); err != nil {
		return nil, err
	}
	opts = opts.applyDefaults()
	return &Runner{
		plan: plan, sink: sink, opts: opts, variantOf: plan.variantOf(),
		grader:  newGrader(opts),
		hand:    newHandover(),
		halts:   newHalts(plan),
		retries: newRetries(),
		meter:   newMeter(len(plan.Cells)),
		log:     newAttemptLog(opts.Log),
	}, nil
}

// Run runs the plan to its end, or until admit or work is done. It is called
// once.
//
// When admit is done no further episode begins, and those in flight finish,
// within Options.Grace. When work is done those in flight are cut off: their
// rows have outcome operator, or budget if the cause of work says so. What a
// run budget stopped ends likewise. In all these cases Run returns no error:
// the Summary tells.
//
// An error means that the run could not go on (tasks that cannot be read, a
// sink that fails: then what was handed over and not acknowledged counts as not
// done), or, as a [VariantError], that one of its variants could not. The
// Summary is right all the same.
func (r *Runner) Run(admit, work context.Context) (Summary, error) {
	r.meter.start()
	working, abort := context.WithCancelCause(work)
	defer abort(nil)
	admitting, stop := context.WithCancel(admit)
	defer stop()
	defer context.AfterFunc(working, stop)()

	var watching sync.WaitGroup
	over := make(chan struct{}) // Run closes it when nothing is left to watch
	watching.Go(func() { r.watch(admit.Done(), over, stop, abort) })
	err := r.rescore(admitting, working)
	if err == nil {
		err = r.fanOut(admitting, working, abort)
	}
	close(over)
	watching.Wait()

	s := r.summary(admit.Err() != nil || work.Err() != nil)
	return s, errors.Join(append([]error{err}, s.Fatal...)...)
}

// fanOut runs feed, workers and drain, and waits for all of them.
func (r *Runner) fanOut(admit, work context.Context, abort context.CancelCauseFunc) error {
	tickets := make(chan *ticket) // the feed sends and closes, workers receive; unbuffered: nothing waits in it
	var feeding, working, draining sync.WaitGroup
	var feedErr, drainErr error
	draining.Go(func() { drainErr = r.drain(context.WithoutCancel(work), abort) })
	feeding.Go(func() { feedErr = r.feed(admit, tickets) })
	for range r.opts.Workers {
		working.Go(func() { r.worker(admit, work, tickets) })
	}
	working.Wait()
	feeding.Wait()
	close(r.hand.records)
	draining.Wait()
	return errors.Join(feedErr, drainErr)
}

// watch ends admission when the run's time is over, and cuts off what is in
// flight when its end takes too long. That the budget is used up, the feed and
// the workers see themselves.
func (r *Runner) watch(
	admitDone, over <-chan struct{}, stop context.CancelFunc, abort context.CancelCauseFunc,
) {
	var grace, runTime, runGrace <-chan time.Time // nil: never
	if r.opts.RunTime > 0 {
		runTime = time.After(r.opts.RunTime)
	}
	for {
		select {
		case <-over:
			return
		case <-admitDone:
			admitDone = nil
			if r.opts.Grace > 0 {
				grace = time.After(r.opts.Grace)
			}
		case <-grace:
			abort(dataset.ErrInterrupted)
		case <-runTime:
			stop()
			r.opts.Budget.end(StopTime)
			runGrace = time.After(runTimeGrace)
		case <-runGrace:
			abort(dataset.ErrRunBudget)
		}
	}
}
