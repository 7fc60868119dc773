package store

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/talaria-run/talaria/dataset"
)

func benchTrajectories(sequences bool) []*dataset.Trajectory {
	trs := make([]*dataset.Trajectory, 512)
	for i := range trs {
		trs[i] = sampleTrajectory(i, sequences)
	}
	return trs
}

// BenchmarkWrite records attempts, sixteen at a time, to the last part.
func BenchmarkWrite(b *testing.B) {
	for name, sequences := range map[string]bool{"text": false, "tokens": true} {
		b.Run(name, func(b *testing.B) {
			trs := benchTrajectories(sequences)
			dir := filepath.Join(b.TempDir(), "run")
			s := mustCreate(b, dir, Options{})
			b.ReportAllocs()
			written := 0
			for b.Loop() {
				i := written % len(trs)
				mustWrite(b, s, trs[i:i+16]...)
				written += 16
			}
			mustClose(b, s)
			rows, bytes := 0, int64(0)
			man, err := readManifest(osFS{}, dir)
			if err != nil {
				b.Fatal(err)
			}
			for _, p := range man.parts {
				for _, f := range p.Files {
					rows += int(f.Rows)
					bytes += f.Bytes
				}
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(bytes)/float64(rows), "bytes/row")
			b.ReportMetric(float64(written)/b.Elapsed().Seconds(), "attempts/s")
		})
	}
}

// BenchmarkEncode encodes the rows of an attempt once for the journal and once
// as Parquet, and writes neither: the least that recording can cost.
func BenchmarkEncode(b *testing.B) {
	trs := benchTrajectories(false)
	f := newFlattener(sampleRun(), Options{})
	enc, err := newEncoder()
	if err != nil {
		b.Fatal(err)
	}
	var batched []*Rows
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		rows := &Rows{}
		f.together().trajectory(rows, trs[i%len(trs)])
		if _, err := enc.rows(kindAttempt, lineAttempt, rows); err != nil {
			b.Fatal(err)
		}
		batched = append(batched, rows)
	}
	writePart(b, batched...)
}

// BenchmarkCall writes call lines from many goroutines, as workers do.
func BenchmarkCall(b *testing.B) {
	s := mustCreate(b, filepath.Join(b.TempDir(), "run"), Options{})
	var worker atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		ep := sampleEpisode(int(worker.Add(1)))
		start, end := sampleCalls(&ep, 0)
		for n := 0; pb.Next(); n++ {
			c := start
			if n%2 == 1 {
				c = end
			}
			if err := s.Call(context.Background(), c); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	mustClose(b, s)
}
