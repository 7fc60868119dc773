package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/talaria-run/talaria/dataset"
)

// line is what a journal line says. The names of the arrays and of the columns
// in them are those of the tables.
type line struct {
	Kind string `json:"kind"`
	Rows
	Calls []CallRow `json:"calls,omitempty"`
}

// Kinds of a journal line.
const (
	lineAttempt   = "attempt"
	lineReward    = "reward"
	lineCallStart = string(dataset.CallStart)
	lineCallEnd   = string(dataset.CallEnd)
)

// CallRow is a call line of the journal: enough of the episode that a row with
// the true cost can be written if the attempt never ends.
type CallRow struct {
	CallID      string  `json:"call_id"`
	Agent       string  `json:"agent"`
	AtUS        int64   `json:"at_us"` // microseconds since the epoch
	EpisodeID   string  `json:"episode_id"`
	Attempt     int     `json:"attempt"`
	GroupID     string  `json:"group_id"`
	Sample      int     `json:"sample"`
	Epoch       int     `json:"epoch"`
	Variant     string  `json:"variant"`
	VariantHash string  `json:"variant_hash"`
	Seed        int64   `json:"seed"`
	TaskID      string  `json:"task_id"`
	TaskHash    string  `json:"task_hash"`
	Occurrence  int     `json:"occurrence"`
	Dataset     string  `json:"dataset"`
	Split       *string `json:"split"`

	MostTokens  int64 `json:"most_tokens"` // that one try may use; 0 is not known
	MostNanoUSD int64 `json:"most_nanousd"`

	// The rest is of a call_end.
	StartUS     int64          `json:"start_us"` // when the call began, 0 if that is not known here
	Usage       *dataset.Usage `json:"usage"`
	CostNanoUSD *int64         `json:"cost_nanousd"`
	Unreported  int            `json:"unreported"`
	ErrorClass  string         `json:"error_class"`
}

// record is one journal record on its way.
type record struct {
	kind recordKind
	seq  uint64 // 0 until it is written the first time
	body []byte // one zstd frame with one JSON line
	sum  uint32 // checksum of body

	rows  *Rows    // of an attempt or rewards
	bytes int      // length of the JSON line, about what the rows hold in memory
	call  *CallRow // of a call line
}

// attemptKey is the key of the attempts table.
type attemptKey struct {
	episodeID string
	attempt   int32
}

// encoder makes records. It is safe for concurrent use.
type encoder struct {
	zstd    *zstd.Encoder
	buffers sync.Pool // of *bytes.Buffer
}

func newEncoder() (*encoder, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderCRC(false), zstd.WithEncoderConcurrency(2)) // the header has a checksum
	if err != nil {
		return nil, fmt.Errorf("making a zstd encoder: %w", err)
	}
	return &encoder{zstd: z, buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }}}, nil
}

// rows encodes the rows of an attempt or of rewards.
func (e *encoder) rows(kind recordKind, name string, rows *Rows) (record, error) {
	buf, ok := e.buffers.Get().(*bytes.Buffer)
	if !ok {
		panic("store: a pool of buffers gave something else")
	}
	defer e.release(buf)
	buf.Reset()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(line{Kind: name, Rows: *rows}); err != nil {
		return record{}, fmt.Errorf("encoding a journal line: %w", err)
	}
	body := e.zstd.EncodeAll(buf.Bytes(), make([]byte, 0, buf.Len()/4)) // text shrinks to a fifth
	return record{kind: kind, body: body, sum: checksum(body), rows: rows, bytes: buf.Len()}, checkLength(body)
}

// release keeps a buffer for the next record, unless a giant one went through.
func (e *encoder) release(buf *bytes.Buffer) {
	const largest = 4 << 20
	if buf.Cap() <= largest {
		e.buffers.Put(buf)
	}
}

// call encodes a call line.
func (e *encoder) call(row CallRow, phase dataset.CallPhase) record {
	body := e.wrap(appendCall(make([]byte, rawHeader, 768), &row, phase)) // an end takes about 600
	kind := kindCallStart
	if phase == dataset.CallEnd {
		kind = kindCallEnd
	}
	return record{kind: kind, body: body, sum: checksum(body), call: &row}
}

// wrap makes a frame of a line that stands behind room for a rawHeader.
func (e *encoder) wrap(b []byte) []byte {
	if len(b)-rawHeader > maxRawFrame { // somebody's task id is a novel
		return e.zstd.EncodeAll(b[rawHeader:], nil)
	}
	return rawFrame(b)
}

// appendCall writes the line by hand: there are two for each model call.
func appendCall(b []byte, r *CallRow, phase dataset.CallPhase) []byte {
	b = append(b, `{"kind":"`...)
	b = append(b, phase...)
	b = append(b, `","calls":[{`...)
	b = appendText(b, "call_id", r.CallID)
	b = appendText(b, "agent", r.Agent)
	b = appendInt(b, "at_us", r.AtUS)
	b = appendText(b, "episode_id", r.EpisodeID)
	b = appendInt(b, "attempt", int64(r.Attempt))
	b = appendText(b, "group_id", r.GroupID)
	b = appendInt(b, "sample", int64(r.Sample))
	b = appendInt(b, "epoch", int64(r.Epoch))
	b = appendText(b, "variant", r.Variant)
	b = appendText(b, "variant_hash", r.VariantHash)
	b = appendInt(b, "seed", r.Seed)
	b = appendText(b, "task_id", r.TaskID)
	b = appendText(b, "task_hash", r.TaskHash)
	b = appendInt(b, "occurrence", int64(r.Occurrence))
	b = appendText(b, "dataset", r.Dataset)
	if r.Split != nil {
		b = appendText(b, "split", *r.Split)
	}
	if r.MostTokens != 0 || r.MostNanoUSD != 0 {
		b = appendInt(b, "most_tokens", r.MostTokens)
		b = appendInt(b, "most_nanousd", r.MostNanoUSD)
	}
	if phase == dataset.CallEnd {
		b = appendEnd(b, r)
	}
	b[len(b)-1] = '}' // the last comma
	return append(b, "]}\n"...)
}

func appendEnd(b []byte, r *CallRow) []byte {
	if r.StartUS != 0 {
		b = appendInt(b, "start_us", r.StartUS)
	}
	if u := r.Usage; u != nil {
		b = append(b, `"usage":{`...)
		b = appendInt(b, "input_tokens", u.Input)
		b = appendInt(b, "cache_read_tokens", u.CacheRead)
		b = appendInt(b, "cache_write_tokens", u.CacheWrite)
		b = appendInt(b, "output_tokens", u.Output)
		if u.Reasoning != nil {
			b = appendInt(b, "reasoning_tokens", *u.Reasoning)
		}
		b[len(b)-1] = '}'
		b = append(b, ',')
	}
	if r.CostNanoUSD != nil {
		b = appendInt(b, "cost_nanousd", *r.CostNanoUSD)
	}
	b = appendInt(b, "unreported", int64(r.Unreported))
	return appendText(b, "error_class", r.ErrorClass)
}

func appendInt(b []byte, name string, v int64) []byte {
	b = append(b, '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	b = strconv.AppendInt(b, v, 10)
	return append(b, ',')
}

func appendText(b []byte, name, v string) []byte {
	b = append(b, '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	if !isPlain(v) {
		quoted, err := json.Marshal(v)
		if err != nil {
			panic("store: encoding a string: " + err.Error())
		}
		b = append(b, quoted...)
		return append(b, ',')
	}
	b = append(b, '"')
	b = append(b, v...)
	return append(b, '"', ',')
}

// isPlain reports whether v stands in JSON as it is.
func isPlain(v string) bool {
	for i := range len(v) {
		if c := v[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// decoder reads the bodies of frames. It is not safe for concurrent use.
type decoder struct {
	zstd *zstd.Decoder
	buf  []byte
}

func newDecoder() (*decoder, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("making a zstd decoder: %w", err)
	}
	return &decoder{zstd: z}, nil
}

func (d *decoder) close() { d.zstd.Close() }

// decode reads the line of a frame into v.
func (d *decoder) decode(f frame, v any) error {
	b, err := d.zstd.DecodeAll(f.body, d.buf[:0])
	if err != nil {
		return fmt.Errorf("decompressing journal record %d: %w", f.seq, err)
	}
	d.buf = b
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber() // kept columns have no declared type
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("decoding journal record %d: %w", f.seq, err)
	}
	return nil
}
