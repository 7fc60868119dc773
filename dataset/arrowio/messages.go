package arrowio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// messages reads the messages of a stream. The library's own reader takes one
// that is cut off between head and body for the end, and makes room for
// whatever length a broken head tells.
type messages struct {
	r     io.Reader
	ended bool  // the end mark was read
	err   error // any other than io.EOF at the end of r
}

// Bounds of one message, in bytes.
const (
	maxHead = 64 << 20
	maxBody = 1 << 31
)

// continuation begins a message, but for those of very old writers.
const continuation = 0xffffffff

// Message implements [ipc.MessageReader].
func (m *messages) Message() (*ipc.Message, error) {
	msg, err := m.read()
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return msg, err
}

func (m *messages) read() (*ipc.Message, error) {
	length, err := m.word()
	if err == nil && length == continuation {
		length, err = m.word()
		err = unexpected(err)
	}
	if err != nil {
		return nil, err
	}
	if length == 0 {
		m.ended = true
		return nil, io.EOF
	}
	if length > maxHead {
		return nil, fmt.Errorf("a message has a head of %d bytes", length)
	}
	head, err := m.take(int64(length))
	if err != nil {
		return nil, err
	}
	size, err := bodyLength(head)
	if err != nil {
		return nil, err
	}
	body, err := m.take(size)
	if err != nil {
		return nil, err
	}
	if err := verify(head); err != nil {
		return nil, err
	}
	return message(head, body)
}

func (m *messages) word() (uint32, error) {
	var b [4]byte
	if _, err := io.ReadFull(m.r, b[:]); err != nil {
		return 0, reading(err)
	}
	return binary.LittleEndian.Uint32(b[:]), nil
}

// take reads n bytes and makes room for no more than there are.
func (m *messages) take(n int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(n, 1<<20)))
	if _, err := io.CopyN(&b, m.r, n); err != nil {
		return nil, unexpected(reading(err))
	}
	return b.Bytes(), nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func reading(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return readError{err}
}

func bodyLength(head []byte) (int64, error) {
	msg, err := message(head, nil)
	if err != nil {
		return 0, err
	}
	size := int64(-1)
	err = guard(func() { size = msg.BodyLen() })
	if err == nil && (size < 0 || size > maxBody) {
		err = fmt.Errorf("a message has a body of %d bytes", size)
	}
	return size, err
}

func message(head, body []byte) (msg *ipc.Message, err error) {
	err = guard(func() { msg = ipc.NewMessage(memory.NewBufferBytes(head), memory.NewBufferBytes(body)) })
	return msg, err
}

// guard makes an error of the library's panic at broken data.
func guard(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	f()
	return nil
}

// Release implements [ipc.MessageReader]; the collector does it.
func (m *messages) Release() {}

// Retain implements [ipc.MessageReader].
func (m *messages) Retain() {}
