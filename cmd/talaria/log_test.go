package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A thousand errors of one class are one line now and one line later; other
// classes, and what is not an error, are not held back.
func TestLoggerLimitsErrorClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := newLogger(&out, false, "info")
		child := log.With(slog.String(errorClass, "timeout"))
		for range 1000 {
			log.Warn("call failed", slog.String(errorClass, "rate_limit"))
			child.Warn("call failed")
		}
		log.Info("started")
		log.Info("started")
		log.Debug("hidden")
		<-time.After(quietPeriod)
		log.Warn("call failed", slog.String(errorClass, "rate_limit"), slog.Any("error", errors.New("HTTP 429")))

		want := []string{
			`level=WARN msg="call failed" error_class=rate_limit`,
			`level=WARN msg="call failed" error_class=timeout`,
			`level=INFO msg=started`,
			`level=INFO msg=started`,
			`level=WARN msg="call failed" error_class=rate_limit error="HTTP 429" dropped=999`,
		}
		if diff := cmp.Diff(want, withoutTimes(out.String())); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

func withoutTimes(log string) []string {
	var lines []string
	for line := range strings.Lines(log) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		lines = append(lines, rest)
	}
	return lines
}
