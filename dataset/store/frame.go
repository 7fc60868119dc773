package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A journal segment is a row of frames. Each is a zstd skippable frame, which
// every zstd reader passes over, and one zstd frame that holds one JSON line.
// The skippable frame says how long the other is and what it must be:
//
//	magic      uint32  0x184D2A5A
//	size       uint32  20
//	tag        "TLJ"
//	kind       byte    a recordKind
//	length     uint32  of the zstd frame
//	sequence   uint64
//	checksum   uint32  CRC-32C of the zstd frame, then of tag to sequence
//
// All numbers are little endian. The sequence number is unique within a run:
// a record that was written twice, because the first time failed, bears the
// same number both times.

// recordKind tells call lines, of which there are many, from what has rows.
type recordKind byte

const (
	kindAttempt   recordKind = 'a'
	kindReward    recordKind = 'r'
	kindCallStart recordKind = 's'
	kindCallEnd   recordKind = 'e'
)

// hasRows reports whether a record holds rows, which have to be durable.
func (k recordKind) hasRows() bool { return k == kindAttempt || k == kindReward }

const (
	skippableMagic = 0x184D2A5A
	headerContent  = 20
	headerSize     = 8 + headerContent
	headerPrefix   = "\x5a\x2a\x4d\x18\x14\x00\x00\x00TLJ" // what every header begins with
)

type frame struct {
	kind recordKind
	seq  uint64
	body []byte // one zstd frame
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func checksum(body []byte) uint32 { return crc32.Checksum(body, castagnoli()) }

// appendFrame appends header and body; bodySum is the checksum of body.
func appendFrame(dst []byte, kind recordKind, seq uint64, body []byte, bodySum uint32) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, skippableMagic)
	dst = binary.LittleEndian.AppendUint32(dst, headerContent)
	dst = append(dst, 'T', 'L', 'J', byte(kind))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(body))) //nolint:gosec // a record is bounded by limits.episode.bytes
	dst = binary.LittleEndian.AppendUint64(dst, seq)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Update(bodySum, castagnoli(), dst[at+8:]))
	return append(dst, body...)
}

// frameAt reads the frame that b begins with; n is its whole length.
func frameAt(b []byte) (f frame, n int, ok bool) {
	if len(b) < headerSize || string(b[:len(headerPrefix)]) != headerPrefix {
		return f, 0, false
	}
	length := int(binary.LittleEndian.Uint32(b[12:]))
	if length < 0 || length > len(b)-headerSize {
		return f, 0, false
	}
	n = headerSize + length
	f = frame{kind: recordKind(b[11]), seq: binary.LittleEndian.Uint64(b[16:]), body: b[headerSize:n]}
	sum := crc32.Update(checksum(f.body), castagnoli(), b[8:24])
	return f, n, sum == binary.LittleEndian.Uint32(b[24:])
}

// damage is what is wrong with a segment.
type damage struct {
	torn   int // bytes at the end that are no frame: what a crash leaves
	broken int // bytes before a later good frame: what no crash of ours leaves
	at     int // offset of the first bad byte
}

// scan calls yield for each good frame of a segment, with its offset. Behind a
// bad frame it goes on at the next good one, so that one bad block does not
// hide what was acknowledged after it.
func scan(b []byte, yield func(f frame, whole []byte) error) (damage, error) {
	var d damage
	for at := 0; at < len(b); {
		f, n, ok := frameAt(b[at:])
		if ok {
			if err := yield(f, b[at:at+n]); err != nil {
				return d, err
			}
			at += n
			continue
		}
		if d.torn+d.broken == 0 {
			d.at = at
		}
		skip, found := nextFrame(b[at+1:])
		if !found {
			d.torn = len(b) - at
			return d, nil
		}
		d.broken += skip + 1
		at += skip + 1
	}
	return d, nil
}

// nextFrame is the offset of the first good frame of b.
func nextFrame(b []byte) (offset int, found bool) {
	for offset < len(b) {
		i := bytes.Index(b[offset:], []byte(headerPrefix))
		if i < 0 {
			return 0, false
		}
		offset += i
		if _, _, ok := frameAt(b[offset:]); ok {
			return offset, true
		}
		offset++
	}
	return 0, false
}

const (
	rawHeader   = 12        // bytes of a raw frame before its content
	maxRawFrame = 128 << 10 // the longest zstd block
)

// rawFrame makes b a zstd frame that is not compressed, which costs nothing:
// call lines are many, short and soon gone. The first rawHeader bytes of b are
// to be filled in.
func rawFrame(b []byte) []byte {
	const (
		magic         = 0xFD2FB528
		singleSegment = 1 << 5
		contentSize4  = 2 << 6 // a content size of four bytes
		lastBlock     = 1
	)
	size := uint32(len(b) - rawHeader) //nolint:gosec // at most maxRawFrame
	if size > maxRawFrame {
		panic("store: a raw frame of more than one block")
	}
	binary.LittleEndian.PutUint32(b, magic)
	b[4] = singleSegment | contentSize4
	binary.LittleEndian.PutUint32(b[5:], size)
	copy(b[9:rawHeader], binary.LittleEndian.AppendUint32(nil, size<<3|lastBlock)) // three bytes of it
	return b
}

// errTooLong is a record that no frame holds.
var errTooLong = errors.New("record is longer than a journal frame can be")

const maxFrame = 1 << 31

func checkLength(body []byte) error {
	if len(body) >= maxFrame {
		return fmt.Errorf("%w: %d bytes", errTooLong, len(body))
	}
	return nil
}
