package source

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/talaria-run/talaria/dataset"
)

// Tasks streams the tasks. It may be ranged over again and then yields equal
// tasks: a file that has changed meanwhile is an error. An error is the last
// thing that is yielded.
func (s *Source) Tasks() iter.Seq2[dataset.Task, error] {
	return func(yield func(dataset.Task, error) bool) {
		p := &pass{Source: s, yield: yield}
		if err := p.run(); err != nil && !p.stopped {
			yield(dataset.Task{}, err)
		}
	}
}

// pass is one reading of all files.
type pass struct {
	*Source
	yield    func(dataset.Task, error) bool
	count    int // tasks yielded
	rows     int // rows read, bad ones included
	selected int // rows that are to be yielded, if the limit allows
	shuffle  *shuffle
	stopped  bool
}

var errStop = errors.New("no more tasks wanted")

func (p *pass) run() error {
	p.bad, p.skipped, p.found = BadRows{}, nil, map[string]bool{}
	if seed := p.opts.Shuffle; seed != nil {
		s, err := newShuffle(*seed, p.opts.Limit)
		if err != nil {
			return err
		}
		defer s.remove()
		p.shuffle = s
	}
	if err := p.opts.Counter.begin(p.opts.Source); err != nil {
		return fmt.Errorf("reading %s: %w", p.opts.Path, err)
	}
	var sums []File
	for _, part := range p.parts {
		sum, err := part.read(p)
		if errors.Is(err, errStop) {
			return nil
		}
		if err != nil {
			return err
		}
		sums = append(sums, sum)
	}
	p.opts.Counter.end(p.opts.Source)
	if err := p.finish(sums); err != nil || p.shuffle == nil {
		return err
	}
	if err := p.shuffle.each(p.give); !errors.Is(err, errStop) {
		return err
	}
	return nil
}

// finish checks what only a whole pass can tell.
func (p *pass) finish(sums []File) error {
	if p.sums != nil && !slices.Equal(p.sums, sums) {
		return fmt.Errorf("%s: the dataset has changed since it was first read; start a new run", p.opts.Path)
	}
	p.sums = sums
	if p.rows == 0 && len(p.skipped) > 0 {
		return fmt.Errorf("%s: not one of %d tasks can be run here; %s: %s",
			p.opts.Path, len(p.skipped), p.skipped[0].Task, p.skipped[0].Reason)
	}
	if p.rows == 0 {
		return emptyError(p.opts.Path)
	}
	if p.rows == p.bad.Count {
		return fmt.Errorf("%s: not one of %d rows can be a task; the first: %w", p.opts.Path, p.rows, p.bad.First[0])
	}
	for _, column := range p.opts.Keep {
		if !p.found[column] {
			return fmt.Errorf("%s: no row has the column %q that is to be kept", p.opts.Path, column)
		}
	}
	return p.checkWhere()
}

func (p *pass) checkWhere() error {
	w := p.opts.Where
	if w == nil {
		return nil
	}
	for _, name := range w.names {
		if !p.found[whereKey(name)] {
			return fmt.Errorf("%s: no row has the column %q that where asks for: %s", p.opts.Path, name, w.text)
		}
	}
	if p.selected == 0 {
		return fmt.Errorf("%s: not one of %d rows is what where asks for: %s", p.opts.Path, p.rows, w.text)
	}
	return nil
}

func (f file) read(p *pass) (File, error) {
	s, err := f.start()
	if err != nil {
		return File{}, err
	}
	defer s.close()
	for {
		row, err := s.rows.next()
		if errors.Is(err, io.EOF) {
			return s.sum(f)
		}
		at := s.rows.at(RowError{File: f.path})
		if _, bad := errors.AsType[badRowError](err); err != nil && !bad {
			at.Reason = err.Error()
			return File{}, at
		}
		var t dataset.Task
		if err == nil {
			t, err = p.task(row)
		}
		if err := p.row(t, err, at); err != nil {
			return File{}, err
		}
	}
}

// full tells that the limit is reached: what follows is only counted.
func (p *pass) full() bool {
	return p.opts.Limit > 0 && p.count == p.opts.Limit && p.shuffle == nil
}

// row takes the task of a row in; bad says why the row is none.
func (p *pass) row(t dataset.Task, bad error, at RowError) error {
	full := p.full()
	if bad != nil {
		if full {
			return nil // counted no more: nobody asked for the rows behind the limit
		}
		return p.badRow(at, bad)
	}
	t.Occurrence = p.opts.Counter.next(p.opts.Source, t.ID)
	wanted := false
	if !full {
		if wanted, bad = p.wanted(&t); bad != nil {
			return p.badRow(at, bad)
		}
	}
	p.rows++
	if !wanted {
		return nil
	}
	p.selected++
	if p.shuffle != nil {
		return p.shuffle.add(t)
	}
	return p.give(t)
}

// wanted tells whether the condition holds.
func (p *pass) wanted(t *dataset.Task) (bool, error) {
	if p.opts.Where == nil {
		return true, nil
	}
	return p.opts.Where.holds(t.Row, p.columns, p.found)
}

// give yields a task.
func (p *pass) give(t dataset.Task) error {
	p.count++
	if p.shuffle != nil {
		p.sort(&t)
	}
	if !p.yield(t, nil) {
		p.stopped = true
		return errStop
	}
	// Later sources number their tasks by all rows of this one, so that a
	// limit does not change who a task is.
	if p.full() && p.opts.Counter.last(p.opts.Source) {
		p.opts.Counter.end(p.opts.Source)
		return errStop
	}
	return nil
}

func (p *pass) badRow(at RowError, reason error) error {
	at.Reason = reason.Error()
	if !p.opts.SkipBadRows {
		return at
	}
	p.rows++
	p.bad.add(at)
	return nil
}
