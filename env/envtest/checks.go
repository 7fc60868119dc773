package envtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

// errCause is the cause with which the suite cancels.
var errCause = errors.New("cancelled by the suite")

func wellFormed(ctx context.Context, c Case) error {
	return withFactory(ctx, c, func(f env.Factory) error {
		for _, ep := range c.Episodes {
			seen, err := play(ctx, c, f, ep)
			if err != nil {
				return err
			}
			if err := seen.validate(); err != nil {
				return fmt.Errorf("episode %q: %w", ep.ID, err)
			}
		}
		return nil
	})
}

// deterministic plays each episode in two factories: whatever they share must
// not tell in what order episodes come.
func deterministic(ctx context.Context, c Case) error {
	forward, err := playAll(ctx, c, c.Episodes)
	if err != nil {
		return err
	}
	backwards := slices.Clone(c.Episodes)
	slices.Reverse(backwards)
	again, err := playAll(ctx, c, backwards)
	if err != nil {
		return err
	}
	slices.Reverse(again)
	return compare(c, forward, again)
}

func playAll(ctx context.Context, c Case, episodes []dataset.Episode) ([]transcript, error) {
	var all []transcript
	err := withFactory(ctx, c, func(f env.Factory) error {
		for _, ep := range episodes {
			seen, err := play(ctx, c, f, ep)
			if err != nil {
				return err
			}
			all = append(all, seen)
		}
		return nil
	})
	return all, err
}

// concurrent plays each episode several times at once in one factory and
// compares with the same episodes played one after another.
func concurrent(ctx context.Context, c Case) error {
	alone, err := playAll(ctx, c, c.Episodes)
	if err != nil {
		return err
	}
	const times = 4
	together := make([]transcript, times*len(c.Episodes))
	err = withFactory(ctx, c, func(f env.Factory) error {
		group, ctx := errgroup.WithContext(ctx)
		for i := range together {
			group.Go(func() (err error) {
				together[i], err = play(ctx, c, f, c.Episodes[i%len(c.Episodes)])
				return err
			})
		}
		return group.Wait()
	})
	if err != nil {
		return err
	}
	for part := range slices.Chunk(together, len(c.Episodes)) {
		if err := compare(c, alone, part); err != nil {
			return err
		}
	}
	return nil
}

func compare(c Case, want, got []transcript) error {
	for i := range want {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			return fmt.Errorf("episode %q is not the same when played again (-first +again):\n%s", c.Episodes[i].ID, diff)
		}
	}
	return nil
}

func closesUnused(ctx context.Context, c Case) error {
	return withFactory(ctx, c, func(f env.Factory) error {
		return withEnv(ctx, f, func(env.Env) error { return nil })
	})
}

// closesCancelled cuts an episode off after Reset. A Step under a cancelled
// context may succeed or fail; Close has to succeed.
func closesCancelled(ctx context.Context, c Case) error {
	return withFactory(ctx, c, func(f env.Factory) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		return withEnv(ctx, f, func(e env.Env) error {
			ep := c.Episodes[0]
			heard, err := e.Reset(ctx, ep)
			if err != nil {
				return fmt.Errorf("Reset: %w", err)
			}
			cancel(errCause)
			_, err = e.Step(ctx, dataset.Message{Role: dataset.Assistant, Content: c.Reply(ep, heard), Policy: true})
			return blameless("Step", err)
		})
	})
}

// cancelledReset cancels before Reset: it may succeed, or fail with the cause.
func cancelledReset(ctx context.Context, c Case) error {
	return withFactory(ctx, c, func(f env.Factory) error {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(errCause)
		return withEnv(ctx, f, func(e env.Env) error {
			_, err := e.Reset(ctx, c.Episodes[0])
			return blameless("Reset", err)
		})
	})
}

// blameless wants of an error under a cancelled context that it says why and
// does not blame the task: a shutdown would count as the task's failure.
func blameless(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, dataset.ErrTask):
		return fmt.Errorf("%s blames the task for a cancelled context: %w", what, err)
	case errors.Is(err, errCause) || errors.Is(err, context.Canceled):
		return nil
	}
	return fmt.Errorf("%s under a cancelled context: neither its cause nor context.Canceled in %w", what, err)
}

func brokenTask(ctx context.Context, c Case) error {
	return withFactory(ctx, c, func(f env.Factory) error {
		for _, ep := range c.Broken {
			if err := withEnv(ctx, f, func(e env.Env) error { return refuses(ctx, e, ep) }); err != nil {
				return err
			}
		}
		return nil
	})
}

func refuses(ctx context.Context, e env.Env, ep dataset.Episode) error {
	_, err := e.Reset(ctx, ep)
	if err == nil {
		return fmt.Errorf("Reset accepts the broken task of episode %q", ep.ID)
	}
	if !errors.Is(err, dataset.ErrTask) {
		return fmt.Errorf("Reset of episode %q: the error does not wrap dataset.ErrTask: %w", ep.ID, err)
	}
	return nil
}
