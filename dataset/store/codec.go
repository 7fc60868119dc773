package store

import (
	kzstd "github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// checkedCodec compresses a part's pages as zstd frames that end with a
// checksum, which every zstd reader verifies: readers of a part, DuckDB too,
// fail on changed bytes instead of answering with wrong rows. The checksum of
// the page header, which parquet-go writes, few of them look at, and the
// library's own codec writes none in the frame.
type checkedCodec struct {
	zstd.Codec // decodes

	encoder *kzstd.Encoder
}

func newCheckedCodec(level kzstd.EncoderLevel) *checkedCodec {
	encoder, err := kzstd.NewWriter(nil,
		kzstd.WithEncoderLevel(level),
		kzstd.WithEncoderConcurrency(1),
		kzstd.WithZeroFrames(true),
		kzstd.WithEncoderCRC(true),
	)
	if err != nil {
		panic("store: making a zstd encoder: " + err.Error())
	}
	return &checkedCodec{encoder: encoder}
}

// Encode implements compress.Codec.
func (c *checkedCodec) Encode(dst, src []byte) ([]byte, error) {
	return c.encoder.EncodeAll(src, dst[:0]), nil
}
