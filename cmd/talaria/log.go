package main

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// newLogger logs to w from a level named debug, info, warn or error. Warnings
// and errors of one kind are rate-limited.
func newLogger(w io.Writer, json bool, level string) *slog.Logger {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		panic("log: unchecked level " + level)
	}
	options := &slog.HandlerOptions{Level: least}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if json {
		handler = slog.NewJSONHandler(w, options)
	}
	return slog.New(&limited{Handler: handler, kinds: &kinds{}})
}

// quietPeriod is how long a kind of warning rests after one was logged.
const quietPeriod = 10 * time.Second

// errorClass is the attribute that tells kinds of one message apart.
const errorClass = "error_class"

// limited is a handler that passes one warning or error of a kind, which is
// its message and error_class, and then at most one per quietPeriod, with the
// number of those that were dropped: thousands of episodes fail alike.
type limited struct {
	slog.Handler
	class string // error_class bound by With
	kinds *kinds // shared by all handlers made with With
}

// Handle implements slog.Handler.
func (l *limited) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return l.Handler.Handle(ctx, r)
	}
	class := l.class
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == errorClass {
			class = a.Value.String()
		}
		return true
	})
	dropped, pass := l.kinds.admit(kind{r.Message, class}, r.Time)
	if !pass {
		return nil
	}
	if dropped > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("dropped", dropped))
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l *limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	class := l.class
	for _, a := range attrs {
		if a.Key == errorClass {
			class = a.Value.String()
		}
	}
	return &limited{l.Handler.WithAttrs(attrs), class, l.kinds}
}

// WithGroup implements slog.Handler.
func (l *limited) WithGroup(name string) slog.Handler {
	return &limited{l.Handler.WithGroup(name), l.class, l.kinds}
}

type kind struct{ message, class string }

// kinds remembers when each kind was last logged. The zero value is ready; it
// is safe for concurrent use.
type kinds struct {
	mu   sync.Mutex
	last map[kind]*lastLogged
}

type lastLogged struct {
	at      time.Time
	dropped int
}

// admit tells whether a record of a kind may be logged now, and how many were
// dropped since the last one.
func (k *kinds) admit(of kind, now time.Time) (dropped int, pass bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	last, seen := k.last[of]
	if seen && now.Sub(last.at) < quietPeriod {
		last.dropped++
		return 0, false
	}
	if k.last == nil {
		k.last = map[kind]*lastLogged{}
	}
	if seen {
		dropped = last.dropped
	}
	k.last[of] = &lastLogged{at: now}
	return dropped, true
}
