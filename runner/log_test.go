package runner

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

// TestFailuresAreToldOnceInAWhile ends three attempts a second for 70 seconds.
func TestFailuresAreToldOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newAttemptLog(slog.New(slog.NewTextHandler(&out, nil)))
		for range 70 {
			l.ended(t.Context(), &dataset.Trajectory{ExitReason: dataset.ExitProviderError, ErrorClass: "timeout", Error: "slow\nstack"})
			l.ended(t.Context(), &dataset.Trajectory{ExitReason: dataset.ExitAnswered, Flags: []string{dataset.FlagUnscored}})
			l.ended(t.Context(), &dataset.Trajectory{ExitReason: dataset.ExitAnswered})
			<-time.After(time.Second)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			_, line, _ = strings.Cut(line, "exit_reason=")
			got = append(got, strings.TrimSpace(line))
		}
		want := []string{
			`provider_error error_class=timeout error=slow count=1`,
			`answered error_class="" error="" count=1`,
			`provider_error error_class=timeout error=slow count=60`,
			`answered error_class="" error="" count=60`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
	})
}
