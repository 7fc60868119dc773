package supervisor

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

func TestClip(t *testing.T) {
	for _, max := range []int{0, 1, 2, 5, 10, 35, 36, 100} {
		for _, piece := range []int{1, 2, 3, 7, 36} {
			t.Run(fmt.Sprintf("max=%d piece=%d", max, piece), func(t *testing.T) {
				stream := []byte("0123456789abcdefghijklmnopqrstuvwxyz")
				for n := range len(stream) + 1 {
					checkClip(t, stream[:n], max, piece)
				}
			})
		}
	}
}

// checkClip writes a stream piece by piece and compares what is kept.
func checkClip(t *testing.T, stream []byte, max, piece int) {
	t.Helper()
	c := &clip{max: max}
	for part := range slices.Chunk(stream, piece) {
		if wrote, err := c.Write(part); wrote != len(part) || err != nil {
			t.Fatalf("Write returned %d, %v", wrote, err)
		}
	}
	got, gap, omitted := c.kept()
	want, head := stream, max*2/5
	if len(stream) > max {
		want = slices.Concat(stream[:head], stream[len(stream)-(max-head):])
	}
	if !bytes.Equal(got, want) || omitted != int64(len(stream)-len(want)) || omitted > 0 && gap != head {
		t.Errorf("of %d bytes: %q, gap %d, omitted %d; want %q", len(stream), got, gap, omitted, want)
	}
}
