package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"
)

// stdio is all that a command may touch of the process. Results go to out,
// logs and progress to err; both outlive their readers.
type stdio struct {
	args      []string // without the program's name
	in        io.Reader
	out       io.Writer
	err       *console
	getenv    func(string) string
	lookupEnv func(string) (string, bool)
	secrets   *secrets // loaded so far; nil: none

	inTerminal, outTerminal, errTerminal bool
	// width of the terminal in columns; asked anew as it may change.
	width func() int

	profile *os.File // where the CPU profile goes; nil: none

	// Set by the global flags, before a command runs.
	log            *slog.Logger
	logJSON        bool
	quiet, noColor bool
}

// processStdio takes hold of the process's own.
func processStdio() *stdio {
	hidden := &secrets{}
	return &stdio{
		args:        os.Args[1:],
		in:          os.Stdin,
		out:         &enduring{w: os.Stdout},
		err:         &console{w: &masked{&enduring{w: os.Stderr}, hidden}},
		getenv:      os.Getenv,
		lookupEnv:   os.LookupEnv,
		secrets:     hidden,
		inTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		outTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		errTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		width:       func() int { return terminalWidth(os.Stderr) },
		log:         slog.New(slog.DiscardHandler),
	}
}

// lookupSecret is a variable of the environment that somebody may use but nobody
// is to see: it is masked wherever it may turn up.
func (s *stdio) lookupSecret(name string) (string, bool) {
	value, ok := s.lookupEnv(name)
	if s.secrets != nil {
		s.secrets.add(value)
	}
	return value, ok
}

func terminalWidth(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 80
	}
	return width
}

// configure applies the global flags.
func (s *stdio) configure(c *cli.Context) error {
	s.quiet = c.Bool("quiet")
	s.noColor = c.Bool("no-color") || s.getenv("NO_COLOR") != ""
	s.setLog(c.String("log-format") == "json", c.String("log-level"))
	return s.startProfile(c.String("cpuprofile"))
}

func (s *stdio) setLog(json bool, level string) {
	s.logJSON = json
	s.log = newLogger(s.err, json, level)
}

// live tells whether stderr can show a display that is drawn over.
func (s *stdio) live() bool { return s.errTerminal && !s.logJSON && s.getenv("TERM") != "dumb" }

// keepRunningWithoutReaders makes a closed pipe an error of the write, and a
// hang-up of the terminal nothing, where either would end the process. Both
// are caught and not ignored, because children inherit what is ignored.
func keepRunningWithoutReaders() {
	ignored := make(chan os.Signal, 1) // never read
	signal.Notify(ignored, syscall.SIGPIPE)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(ignored, syscall.SIGHUP)
	}
}

// enduring is a writer whose reader may go away. From then on it swallows what
// is written: a run goes on to its end and exits with its own code. Other
// errors, such as a full disk, are returned. It is safe for concurrent use.
type enduring struct {
	mu   sync.Mutex
	w    io.Writer
	gone bool
}

func (e *enduring) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return len(p), nil
	}
	n, err := e.w.Write(p)
	// EPIPE: a closed pipe; EIO: a terminal that hung up.
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EIO) {
		e.gone = true
		return len(p), nil
	}
	return n, err
}
