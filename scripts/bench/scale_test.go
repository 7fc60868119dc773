//go:build linux

package main

import "testing"

// open builds talaria without C, as a worker on a cluster has it.
func open(t *testing.T) *workshop {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Setenv("CGO_ENABLED", "0")
	w, err := openWorkshop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// TestMemoryInFlight has a tenth of ten thousand requests open, for which it
// allows a tenth of 1 GiB, besides what a run may take whatever its size.
func TestMemoryInFlight(t *testing.T) {
	const anyRun, most = 256 << 20, 1 << 30 / 10
	o := inflightOptions{Episodes: 3000, Concurrency: 1000, PromptBytes: 8 << 10, LatencyMS: 2000}
	f, err := inflight(t.Context(), open(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak %s, gauge %+v", mib(f.used.peak), f.gauge)
	if f.gauge.MaxInFlight < 990 || f.gauge.Calls != o.Episodes {
		t.Errorf("%d requests open at once, %d calls; want 990 and %d", f.gauge.MaxInFlight, f.gauge.Calls, o.Episodes)
	}
	if f.used.peak > anyRun+most {
		t.Errorf("peak resident memory %s, want at most %s", mib(f.used.peak), mib(anyRun+most))
	}
}

// TestMemoryPerRow compares datasets that are large enough for rows to show. The
// collector is made keen, so that its whims do not hide them.
func TestMemoryPerRow(t *testing.T) {
	o := rowsOptions{Base: 40_000, Rows: 240_000, Rounds: 1}
	w := open(t)
	t.Setenv("GOGC", "20")
	f, err := rows(t.Context(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peaks %v and %v, %.0f bytes a row, first call of the resume after %v", f.base, f.rows, f.perRow(o), f.first)
	if got := f.perRow(o); got > maxBytesPerRow {
		t.Errorf("a further row takes %.0f bytes, want at most %d", got, maxBytesPerRow)
	}
	if f.first == 0 {
		t.Error("the resume made no model call")
	}
}
