package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/talaria-run/talaria/env/sandbox"
)

// Backend starts sandboxes on this machine. It is safe for concurrent use.
type Backend struct {
	owner   *owner
	users   *users   // nil: the harness has no other users
	cgroups *cgroups // of nowhere, where there are none
	bwrap   *bwrap   // nil: unconfined
	self    *os.File // our own program
	spawner *spawner

	want   int // sandboxes ahead of need
	making sync.WaitGroup

	mu     sync.Mutex
	boxes  map[*box]struct{}
	ahead  []*box // of boxes: those that nobody has asked for yet
	closed bool
}

var _ sandbox.Backend = (*Backend)(nil)

// New prepares the backend and tries it, so that what does not work is known
// before anything is spent: the error is then a [sandbox.UnavailableError].
// Close must be called.
func New(ctx context.Context, opts Options) (*Backend, error) {
	b := &Backend{want: opts.Ahead, boxes: map[*box]struct{}{}}
	err := b.open(opts)
	if err == nil {
		err = b.confine(ctx, opts)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close(context.WithoutCancel(ctx)))
	}
	return b, nil
}

// open gets what sandboxes share.
func (b *Backend) open(opts Options) error {
	state, err := stateDir(opts)
	if err != nil {
		return fmt.Errorf("preparing sandboxes: %w", err)
	}
	token := newToken()
	if b.cgroups, err = openCgroups("talaria-" + strconv.Itoa(os.Getpid()) + "-" + token); err != nil {
		return err
	}
	if b.owner, err = newOwner(state, token, b.cgroups.dirs()); err != nil {
		return fmt.Errorf("preparing sandboxes: %w", err)
	}
	if b.users, err = openUsers(filepath.Join(state, usersFile)); err != nil {
		return err
	}
	if b.self, err = openSelf(b.users != nil); err != nil {
		return fmt.Errorf("opening our own program: %w", err)
	}
	b.spawner = newSpawner()
	return nil
}

// openSelf opens our own program. If others are to run it who may not, which is
// so after a build with a strict umask, it is a copy in memory.
func openSelf(forOthers bool) (*os.File, error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	info, err := self.Stat()
	if err == nil && (!forOthers || info.Mode().Perm()&0o005 == 0o005) {
		return self, nil
	}
	defer func() { _ = self.Close() }() // read only
	fd, err := unix.MemfdCreate("talaria", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	written := os.NewFile(uintptr(fd), "talaria")
	defer func() { _ = written.Close() }() // in memory
	if _, err := io.Copy(written, self); err != nil {
		return nil, err
	}
	if err := written.Chmod(0o755); err != nil {
		return nil, err
	}
	// A file that is open for writing cannot be run.
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// confine chooses between sandboxes and mere processes.
func (b *Backend) confine(ctx context.Context, opts Options) error {
	etc := filepath.Join(b.owner.dir, "etc")
	if err := writeEtc(etc); err != nil {
		return fmt.Errorf("preparing sandboxes: %w", err)
	}
	var err error
	if b.bwrap, err = openBwrap(ctx, opts, etc); err == nil {
		err = b.try(ctx)
	}
	if errors.Is(err, errCgroup) {
		// Whether processes can be moved shows when one is: a user may own the
		// cgroup to move it to, but not the one where it comes from.
		if err = b.cgroups.close(ctx); err == nil {
			b.cgroups = &cgroups{}
			err = b.try(ctx)
		}
	}
	if _, ok := errors.AsType[*sandbox.UnavailableError](err); ok && opts.AllowUnconfined {
		b.bwrap = nil
		err = b.try(ctx)
	}
	if errors.Is(err, fs.ErrPermission) && b.users != nil {
		return &sandbox.UnavailableError{Backend: Name, Reason: err.Error(), Fix: fixTemp}
	}
	return err
}

// try starts a sandbox with limits and ends it.
func (b *Backend) try(ctx context.Context) error {
	s, err := b.start(ctx, sandbox.Spec{Memory: 64 << 20, Pids: 16})
	if err != nil {
		return err
	}
	return s.Close(context.WithoutCancel(ctx))
}

// Confined tells whether sandboxes are more than processes.
func (b *Backend) Confined() bool { return b.bwrap != nil }

// Start implements [sandbox.Backend].
func (b *Backend) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("starting a sandbox: %w", err)
	}
	if spec.Image != "" {
		return nil, fmt.Errorf("starting a sandbox: backend %s cannot run images, such as %s", Name, spec.Image)
	}
	s, err := b.start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("starting a sandbox: %w", err)
	}
	b.refill(context.WithoutCancel(ctx), s.kind)
	return s, nil
}

func (b *Backend) start(ctx context.Context, spec sandbox.Spec) (*box, error) {
	s := b.takeAhead(kindOf(spec))
	if s == nil {
		var err error
		if s, err = b.launch(ctx, kindOf(spec)); err != nil {
			return nil, err
		}
	}
	if err := s.furnish(ctx, spec); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// launch has a sandbox of a kind boot.
func (b *Backend) launch(ctx context.Context, k kind) (*box, error) {
	s := newBox(b, k)
	if err := b.admit(s); err != nil {
		return nil, err
	}
	if err := s.launch(ctx); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// takeAhead takes a sandbox of a kind that was started ahead of need; nil if
// there is none.
func (b *Backend) takeAhead(k kind) *box {
	b.mu.Lock()
	defer b.mu.Unlock()
	// Those that something has killed are cleared away with the backend.
	b.ahead = slices.DeleteFunc(b.ahead, (*box).gone)
	i := slices.IndexFunc(b.ahead, func(s *box) bool { return s.kind == k })
	if i < 0 {
		return nil
	}
	s := b.ahead[i]
	b.ahead = slices.Delete(b.ahead, i, i+1)
	return s
}

// refill starts another sandbox of the kind that was asked for last, so that the
// next one who asks does not have to wait for it to boot.
func (b *Backend) refill(ctx context.Context, k kind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.ahead) >= b.want {
		return
	}
	b.making.Go(func() {
		s, err := b.launch(ctx, k)
		if err != nil {
			return // whoever asks next will see the same
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ahead = append(b.ahead, s)
	})
}

func (b *Backend) admit(s *box) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errors.New("the backend is closed")
	}
	b.boxes[s] = struct{}{}
	return nil
}

func (b *Backend) dismiss(s *box) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.boxes, s)
}

// Close implements [sandbox.Backend]. Only the first call does anything.
func (b *Backend) Close(ctx context.Context) error {
	b.mu.Lock()
	closed := b.closed
	b.closed = true
	b.mu.Unlock()
	if closed {
		return nil
	}
	b.making.Wait()
	b.mu.Lock()
	alive := slices.Collect(maps.Keys(b.boxes))
	b.mu.Unlock()
	errs := make([]error, len(alive))
	var ending sync.WaitGroup
	for i, s := range alive {
		ending.Go(func() { errs[i] = s.Close(ctx) })
	}
	ending.Wait()
	return errors.Join(slices.Concat(errs, b.release(ctx))...)
}

// release gives back what open got, as far as that came.
func (b *Backend) release(ctx context.Context) []error {
	var errs []error
	if b.spawner != nil {
		b.spawner.close()
	}
	if b.self != nil {
		errs = append(errs, b.self.Close())
	}
	if b.users != nil {
		errs = append(errs, b.users.file.Close())
	}
	if b.cgroups != nil {
		errs = append(errs, b.cgroups.close(ctx))
	}
	if b.owner != nil {
		errs = append(errs, b.owner.close())
	}
	return errs
}

// spawner starts processes from one thread. A sandbox dies with the thread that
// started it, which is how it dies with the harness; any other thread may end
// earlier.
type spawner struct {
	work  chan func() // from start; closed by close
	ended chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{work: make(chan func()), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		for do := range s.work {
			do()
		}
	}()
	return s
}

func (s *spawner) start(start func() error) error {
	done := make(chan error, 1)
	s.work <- func() { done <- start() }
	return <-done
}

func (s *spawner) close() {
	close(s.work)
	<-s.ended
}
