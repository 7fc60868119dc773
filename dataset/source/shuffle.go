package source

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/talaria-run/talaria/dataset"
)

// shuffle puts tasks into an order that depends on a seed and on who each task
// is, not on where its row stands: the same rows in another format or another
// order give the same order, and new rows leave that of the others as it was.
//
// The tasks wait in a temporary file. Held in memory are 16 bytes for each, or
// only for the first so many of the order where there is a limit.
type shuffle struct {
	seed   string
	limit  int // 0: none
	file   *os.File
	w      *bufio.Writer
	size   int64
	picks  picks
	files  []fs.FS // of tasks that have some
	remove func()
}

// pick is a task by its rank in the order and its place in the file.
type pick struct {
	rank uint64
	at   int64
}

func (p pick) compare(q pick) int {
	return cmp.Or(cmp.Compare(p.rank, q.rank), cmp.Compare(p.at, q.at))
}

// picks is a heap with the last of the order first.
type picks []pick

func (p picks) Len() int           { return len(p) }
func (p picks) Less(i, j int) bool { return p[i].compare(p[j]) > 0 }
func (p picks) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }

// Push implements [heap.Interface].
func (p *picks) Push(x any) { *p = append(*p, x.(pick)) } //nolint:forcetypeassert // only picks are pushed

// Pop implements [heap.Interface].
func (p *picks) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// waiting is a task as it waits in the file.
type waiting struct {
	dataset.Task
	Files int // index in shuffle.files, -1: it has none
	Keep  any `json:",omitempty"` // never set: it is made of the row again
}

func newShuffle(seed int64, limit int) (*shuffle, error) {
	f, err := os.CreateTemp("", "talaria-shuffle-*")
	if err != nil {
		return nil, fmt.Errorf("making a temporary file to shuffle the dataset in: %w", err)
	}
	// Where the system allows it the name goes at once, so that nothing is left
	// behind if the process is killed.
	_ = os.Remove(f.Name())
	return &shuffle{
		seed: strconv.FormatInt(seed, 10), limit: limit, file: f, w: bufio.NewWriterSize(f, 256<<10),
		remove: func() { _ = f.Close(); _ = os.Remove(f.Name()) },
	}, nil
}

// rank is a task's place in the order.
func (s *shuffle) rank(t *dataset.Task) uint64 {
	id := dataset.ID("shuffle", s.seed, t.Key())
	n, err := strconv.ParseUint(id[:16], 16, 64)
	if err != nil {
		panic("source: " + err.Error())
	}
	return n
}

// add takes a task in, unless the limit leaves no place for it.
func (s *shuffle) add(t dataset.Task) error {
	p := pick{rank: s.rank(&t), at: s.size}
	full := s.limit > 0 && len(s.picks) == s.limit
	if full && p.compare(s.picks[0]) > 0 {
		return nil
	}
	if err := s.write(t); err != nil {
		return fmt.Errorf("shuffling the dataset in %s: %w; TMPDIR may name a folder with more room", os.TempDir(), err)
	}
	switch {
	case full:
		s.picks[0] = p
		heap.Fix(&s.picks, 0)
	case s.limit > 0:
		heap.Push(&s.picks, p)
	default:
		s.picks = append(s.picks, p)
	}
	return nil
}

func (s *shuffle) write(t dataset.Task) error {
	w := waiting{Task: t, Files: -1}
	if t.Files != nil {
		w.Files = len(s.files)
		s.files = append(s.files, t.Files)
		w.Task.Files = nil
	}
	data, err := json.Marshal(w)
	if err != nil {
		return err
	}
	var length [4]byte
	binary.LittleEndian.PutUint32(length[:], uint32(len(data))) //nolint:gosec // a row is bounded
	if _, err := s.w.Write(length[:]); err != nil {
		return err
	}
	n, err := s.w.Write(data)
	s.size += int64(len(length) + n)
	return err
}

// each hands the tasks on in order.
func (s *shuffle) each(yield func(dataset.Task) error) error {
	if err := s.w.Flush(); err != nil {
		return fmt.Errorf("shuffling the dataset in %s: %w; TMPDIR may name a folder with more room", os.TempDir(), err)
	}
	slices.SortFunc(s.picks, pick.compare)
	for _, p := range s.picks {
		t, err := s.read(p.at)
		if err != nil {
			return fmt.Errorf("reading the shuffled dataset again: %w", err)
		}
		if err := yield(t); err != nil {
			return err
		}
	}
	return nil
}

func (s *shuffle) read(at int64) (dataset.Task, error) {
	var length [4]byte
	if _, err := s.file.ReadAt(length[:], at); err != nil {
		return dataset.Task{}, err
	}
	data := make([]byte, binary.LittleEndian.Uint32(length[:]))
	if _, err := s.file.ReadAt(data, at+int64(len(length))); err != nil {
		return dataset.Task{}, err
	}
	w := waiting{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&w); err != nil {
		return dataset.Task{}, err
	}
	if w.Files >= 0 {
		w.Task.Files = s.files[w.Files]
	}
	return w.Task, nil
}
