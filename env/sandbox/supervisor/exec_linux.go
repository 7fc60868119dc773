package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/talaria-run/talaria/env/sandbox"
)

// session is what is kept from one command to the next. Of the commands that
// keep state there is one at a time, but files are read beside it.
type session struct {
	mu   sync.Mutex
	dir  string // where the last command ended
	text []byte // restores variables and functions; nil at the beginning
}

// at is an absolute name, or one relative to the session's directory.
func (s *session) at(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return filepath.Join(s.dir, name)
}

func (s *session) state() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

func (s *session) move(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dir = dir
}

func (s *session) keep(text []byte, dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.dir = text, dir
}

// exec runs one command.
func (s *server) exec(ctx context.Context, args execArgs, body io.Reader, out io.Writer) (execValue, error) {
	stdin, err := io.ReadAll(body)
	if err != nil {
		return execValue{}, err
	}
	value, err := s.runIn(ctx, args, stdin, out)
	if why, ok := errors.AsType[*unstartableError](err); ok {
		n, err := fmt.Fprintf(out, "sandbox: cannot start the command: %v\n", why)
		return execValue{ExitCode: sandbox.ExitUnstartable, Gap: n}, err
	}
	return value, err
}

// unstartableError tells why the sandbox has no place for a command, which is
// for the command's author to know.
type unstartableError struct{ error }

// runIn runs a command in its directory. When the session's own is gone, that
// is said once; the next command begins where the first one did.
func (s *server) runIn(ctx context.Context, args execArgs, stdin []byte, out io.Writer) (execValue, error) {
	dir := s.session.at(args.Cwd)
	if args.Fresh && !filepath.IsAbs(args.Cwd) {
		dir = filepath.Join(s.setup.Workdir, args.Cwd)
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "chdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if err != nil && args.Cwd == "" {
		s.session.move(s.setup.Workdir)
		err = fmt.Errorf("%w; the next command runs in %s", err, s.setup.Workdir)
	}
	if err != nil {
		return execValue{}, &unstartableError{err}
	}
	p := program{dir: dir, stdin: stdin, keep: args.MaxOutput}
	p.timeout = cmp.Or(args.Timeout, s.setup.Timeout)
	if args.Fresh {
		return s.runFresh(ctx, p, args, out)
	}
	return s.runKept(ctx, p, args, out)
}

func (s *server) runFresh(ctx context.Context, p program, args execArgs, out io.Writer) (execValue, error) {
	env := maps.Clone(s.setup.Env)
	maps.Copy(env, args.Env)
	return s.runText(ctx, p, s.shell.fresh(string(args.Script)), env, out)
}

// runKept runs a command between the state before it and the state after it.
func (s *server) runKept(ctx context.Context, p program, args execArgs, out io.Writer) (execValue, error) {
	env := map[string]string{}
	text := s.session.state()
	if text == nil {
		env = maps.Clone(s.setup.Env)
	}
	for name, value := range args.Env {
		if !isVariable(name) {
			env[name] = value
		}
	}
	if err := s.putState(keptName, text); err != nil {
		return execValue{}, err
	}
	left := filepath.Join(s.setup.State, leftName)
	if err := RemoveTree(left); err != nil {
		return execValue{}, err
	}
	value, err := s.runText(ctx, p, s.shell.keeping(string(args.Script), p.dir, s.setup.State, args.Env), env, out)
	if err != nil {
		return value, err
	}
	data, _, err := readRegular(left, 0, sandbox.MaxRead)
	if err != nil {
		value.RolledBack = true
		return value, nil //nolint:nilerr // a shell that left no state is what RolledBack tells
	}
	if text, dir, ok := parseState(data); ok {
		s.session.keep(text, dir)
	} else {
		value.RolledBack = true
	}
	return value, nil
}

// putState makes a file of the state directory. Commands can reach that too: if
// one has made a mess there, it is cleared away.
func (s *server) putState(name string, data []byte) error {
	file := filepath.Join(s.setup.State, name)
	if makeFile(file, data) == nil {
		return nil
	}
	_ = os.MkdirAll(s.setup.State, 0o700)
	_ = os.Chmod(s.setup.State, 0o700) //nolint:gosec // a directory needs to be searched
	entries, err := os.ReadDir(s.setup.State)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		_ = RemoveTree(filepath.Join(s.setup.State, entry.Name()))
	}
	return makeFile(file, data)
}

// maxArg is how long a text may be as one argument of a process; Linux allows
// 128 KiB.
const maxArg = 120 << 10

// runText runs a shell text and sends its output.
func (s *server) runText(ctx context.Context, p program, text string, env map[string]string, out io.Writer) (execValue, error) {
	if len(text) > maxArg {
		name := fmt.Sprintf("script-%d", s.scripts.Add(1))
		if err := s.putState(name, []byte(text)); err != nil {
			return execValue{}, err
		}
		file := filepath.Join(s.setup.State, name)
		defer func() { _ = RemoveTree(file) }()
		text = ". " + sandbox.Quote(file)
	}
	p.argv = s.shell.argv(text)
	env["PWD"] = p.dir
	maps.Copy(env, s.setup.Mark)
	for name, value := range env {
		p.env = append(p.env, name+"="+value)
	}
	begin := time.Now()
	ran, err := s.children.run(ctx, p)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return execValue{}, err
	}
	value := execValue{ExitCode: ran.exitCode(), TimedOut: ran.timedOut, Duration: time.Since(begin)}
	var output []byte
	output, value.Gap, value.Omitted = ran.output.kept()
	_, err = out.Write(output)
	return value, err
}
