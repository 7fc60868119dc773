package store

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/talaria-run/talaria/dataset"
)

// testSegment is a segment of n call lines and the offsets of its frames.
func testSegment(tb testing.TB, n int) (segment []byte, offsets []int) {
	tb.Helper()
	enc, err := newEncoder()
	if err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		ep := sampleEpisode(i)
		r := enc.call(CallRow{CallID: strconv.Itoa(i), EpisodeID: ep.ID}, dataset.CallStart)
		offsets = append(offsets, len(segment))
		segment = appendFrame(segment, r.kind, uint64(i+1), r.body, r.sum)
	}
	return segment, append(offsets, len(segment))
}

func sequences(tb testing.TB, b []byte) ([]uint64, damage) {
	tb.Helper()
	var seqs []uint64
	bad, err := scan(b, func(f frame, _ []byte) error {
		seqs = append(seqs, f.seq)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return seqs, bad
}

func TestScan(t *testing.T) {
	segment, at := testSegment(t, 4)
	broken := bytes.Clone(segment)
	broken[at[1]+headerSize+20] ^= 1
	tests := []struct {
		name string
		in   []byte
		want []uint64
		bad  damage
	}{
		{"whole", segment, []uint64{1, 2, 3, 4}, damage{}},
		{"empty", nil, nil, damage{}},
		{"torn header", segment[:at[3]+10], []uint64{1, 2, 3}, damage{torn: 10, at: at[3]}},
		{"torn body", segment[:at[4]-1], []uint64{1, 2, 3}, damage{torn: at[4] - at[3] - 1, at: at[3]}},
		{"zeros behind", append(bytes.Clone(segment), make([]byte, 4096)...), []uint64{1, 2, 3, 4}, damage{torn: 4096, at: at[4]}},
		{"broken in the middle", broken, []uint64{1, 3, 4}, damage{broken: at[2] - at[1], at: at[1]}},
		{"a frame cut out", append(bytes.Clone(segment[:at[1]]), segment[at[2]:]...), []uint64{1, 3, 4}, damage{}},
		{"half a frame in the middle", append(bytes.Clone(segment[:at[1]+30]), segment[at[2]:]...), []uint64{1, 3, 4}, damage{broken: 30, at: at[1]}},
		{"not a journal", []byte("hello"), nil, damage{torn: 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, bad := sequences(t, tt.in)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("frames (-want +got):\n%s", diff)
			}
			if bad != tt.bad {
				t.Errorf("damage = %+v, want %+v", bad, tt.bad)
			}
		})
	}
}

// TestSegmentIsZstd reads a segment as any zstd reader does: the headers are
// skipped and JSON lines remain.
func TestSegmentIsZstd(t *testing.T) {
	segment, _ := testSegment(t, 3)
	enc, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	r, err := enc.rows(kindReward, lineReward, &Rows{Rewards: []RewardRow{{Name: "exact"}}})
	if err != nil {
		t.Fatal(err)
	}
	segment = appendFrame(segment, r.kind, 4, r.body, r.sum)
	z, err := zstd.NewReader(bytes.NewReader(segment))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for l := range strings.Lines(string(text)) {
		var v struct{ Kind string }
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatalf("line %q: %v", l, err)
		}
		kinds = append(kinds, v.Kind)
	}
	if diff := cmp.Diff([]string{"call_start", "call_start", "call_start", "reward"}, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

func TestCallLineRoundTrip(t *testing.T) {
	split := "te\"st"
	full := CallRow{
		CallID: "c-0-1", Agent: "policy", AtUS: 12, EpisodeID: "e", Attempt: 1, GroupID: "g", Sample: 2, Epoch: 3,
		Variant: "m=ü\n", VariantHash: "v", Seed: -5, TaskID: "t\\", TaskHash: "h", Occurrence: 4, Dataset: "d", Split: &split,
		Usage:      &dataset.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, Reasoning: new(int64(0))},
		MostTokens: 7, MostNanoUSD: 8,
		StartUS: 5, CostNanoUSD: new(int64(0)), Unreported: 1, ErrorClass: "timeout",
	}
	start := full
	start.StartUS, start.Usage, start.CostNanoUSD, start.Unreported, start.ErrorClass = 0, nil, nil, 0, ""
	novel := full
	novel.TaskID = strings.Repeat("x", maxRawFrame)
	tests := []struct {
		name  string
		phase dataset.CallPhase
		row   CallRow
	}{
		{"start", dataset.CallStart, start},
		{"end", dataset.CallEnd, full},
		{"end without usage", dataset.CallEnd, CallRow{CallID: "c"}},
		{"longer than a raw frame", dataset.CallEnd, novel},
	}
	enc, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.close()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var l line
			if err := dec.decode(frame{body: enc.call(tt.row, tt.phase).body}, &l); err != nil {
				t.Fatal(err)
			}
			if l.Kind != string(tt.phase) {
				t.Errorf("kind = %q, want %q", l.Kind, tt.phase)
			}
			if diff := cmp.Diff([]CallRow{tt.row}, l.Calls); diff != "" {
				t.Errorf("call (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzScan makes sure that no truncation and no flipped byte hides a frame that
// it does not touch, or lets a wrong one through.
func FuzzScan(f *testing.F) {
	f.Add(uint16(100), uint16(300), byte(1))
	f.Add(uint16(0), uint16(9999), byte(0x80))
	f.Add(uint16(1500), uint16(1400), byte(0))
	segment, offsets := testSegment(f, 6)
	f.Fuzz(func(t *testing.T, flip, cut uint16, mask byte) {
		b := bytes.Clone(segment)
		at, end := int(flip)%len(b), int(cut)%(len(b)+1)
		b[at] ^= mask
		b = b[:end]
		got, _ := sequences(t, b)
		var want []uint64
		for i := range len(offsets) - 1 {
			touched := mask != 0 && offsets[i] <= at && at < offsets[i+1]
			if !touched && offsets[i+1] <= end {
				want = append(want, uint64(i+1))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("flip %d^%#x, cut at %d (-want +got):\n%s", at, mask, end, diff)
		}
	})
}
