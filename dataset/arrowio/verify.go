package arrowio

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
)

// verify looks at the lengths in a schema. The library makes room for them
// before it looks at what there is, so a flipped bit could take all memory.
func verify(head []byte) error {
	var err error
	if p := guard(func() { err = (&verifier{head: head}).message() }); p != nil {
		return p
	}
	return err
}

// Fields of the tables of Arrow's Message.fbs and Schema.fbs, as offsets in a
// table's index, and the kind of a message.
const (
	messageKind, messageHeader   = 6, 8
	schemaFields, schemaMetadata = 6, 8
	fieldChildren, fieldMetadata = 14, 16
	kindSchema                   = 1
)

// maxFields bounds a schema, since a table may stand in it more than once.
const maxFields = 1 << 16

type verifier struct {
	head   []byte
	fields int
}

var errLength = errors.New("a message tells of more than it holds")

func (v *verifier) message() error {
	m := flatbuffers.Table{Bytes: v.head, Pos: flatbuffers.GetUOffsetT(v.head)}
	header, ok := table(m, messageHeader)
	if !ok || m.GetByteSlot(messageKind, 0) != kindSchema {
		return nil
	}
	if err := v.vector(header, schemaMetadata); err != nil {
		return err
	}
	return v.each(header, schemaFields, v.field)
}

func (v *verifier) field(t flatbuffers.Table) error {
	if v.fields++; v.fields > maxFields {
		return fmt.Errorf("a schema of more than %d fields", maxFields)
	}
	if err := v.vector(t, fieldMetadata); err != nil {
		return err
	}
	return v.each(t, fieldChildren, v.field)
}

// vector checks that a vector has no more entries than there are bytes.
func (v *verifier) vector(t flatbuffers.Table, slot flatbuffers.VOffsetT) error {
	if at := t.Offset(slot); at != 0 && !v.fits(t, flatbuffers.UOffsetT(at)) {
		return errLength
	}
	return nil
}

func (v *verifier) fits(t flatbuffers.Table, at flatbuffers.UOffsetT) bool {
	n := t.VectorLen(at)
	return n >= 0 && n <= len(v.head)/4
}

// each goes through a vector of tables.
func (v *verifier) each(t flatbuffers.Table, slot flatbuffers.VOffsetT, visit func(flatbuffers.Table) error) error {
	at := flatbuffers.UOffsetT(t.Offset(slot))
	if at == 0 {
		return nil
	}
	if !v.fits(t, at) {
		return errLength
	}
	start := t.Vector(at)
	for i := range t.VectorLen(at) {
		entry := t.Indirect(start + flatbuffers.UOffsetT(i)*4)
		if err := visit(flatbuffers.Table{Bytes: v.head, Pos: entry}); err != nil {
			return err
		}
	}
	return nil
}

// table is a table within another.
func table(t flatbuffers.Table, slot flatbuffers.VOffsetT) (inner flatbuffers.Table, ok bool) {
	at := flatbuffers.UOffsetT(t.Offset(slot))
	if at == 0 {
		return flatbuffers.Table{}, false
	}
	return flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Pos + at)}, true
}

// bounded makes room for the buffers of a batch, as a batch tells of their sizes,
// but for none that no batch needs.
type bounded struct{ memory.Allocator }

// maxBuffer bounds one buffer of a batch, in bytes.
const maxBuffer = 1 << 30

// Allocate implements [memory.Allocator]. The library makes an error of its
// panic.
func (b bounded) Allocate(size int) []byte {
	b.check(size)
	return b.Allocator.Allocate(size)
}

// Reallocate implements [memory.Allocator].
func (b bounded) Reallocate(size int, old []byte) []byte {
	b.check(size)
	return b.Allocator.Reallocate(size, old)
}

func (bounded) check(size int) {
	if size > maxBuffer {
		panic(fmt.Sprintf("a batch tells of a buffer of %d bytes; write the table in smaller batches", size))
	}
}
