package store

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/compress/zstd"
)

// TestChangedPagesAreNoticed flips every bit of a compressed page: what comes
// out is an error or what went in.
func TestChangedPagesAreNoticed(t *testing.T) {
	pages := map[string]string{
		"does not compress": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"compresses well":   strings.Repeat("the same again and ", 50),
		"empty":             "",
	}
	codec := newCheckedCodec(zstd.SpeedFastest)
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			whole, err := codec.Encode(nil, []byte(page))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := codec.Decode(nil, whole); err != nil || string(got) != page {
				t.Fatalf("got %q, %v", got, err)
			}
			for bit := range 8 * len(whole) {
				changed := bytes.Clone(whole)
				changed[bit/8] ^= 1 << (bit % 8)
				if got, err := codec.Decode(nil, changed); err == nil && string(got) != page {
					t.Errorf("bit %d: got %q and no error", bit, got)
				}
			}
		})
	}
}
