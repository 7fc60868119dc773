package source

import (
	"crypto/sha256"
	"fmt"
	"slices"
)

// Counter numbers the tasks of a run's sources that have the same id: a task's
// occurrence is how many rows before it, in its source and in earlier ones,
// have that id. Ids are held as 16-byte hashes, about 32 bytes a row while the
// sources are counted; from then on only those that several rows have.
//
// Sources are read in order; once all are counted, each may be read again and
// gets the same numbers. One goroutine uses a Counter at a time.
type Counter struct {
	counts   []map[key]int32  // of each source
	done     []bool           // read to the end
	repeated map[key]struct{} // ids that several rows have; nil until all are counted
}

type key [16]byte

// NewCounter makes a Counter for so many sources.
func NewCounter(sources int) *Counter {
	return &Counter{counts: make([]map[key]int32, sources), done: make([]bool, sources)}
}

// begin starts a pass over a source, which forgets the source's last pass.
func (c *Counter) begin(source int) error {
	if source >= len(c.counts) {
		panic(fmt.Sprintf("source: source %d of a counter for %d", source, len(c.counts)))
	}
	for i := range source {
		if !c.done[i] {
			return fmt.Errorf("source %d is read before source %d was read to its end", source, i)
		}
	}
	c.counts[source], c.done[source] = map[key]int32{}, false
	return nil
}

// next numbers the next row of the source.
func (c *Counter) next(source int, id string) int {
	sum := sha256.Sum256([]byte(id))
	k := key(sum[:16])
	if _, again := c.repeated[k]; c.repeated != nil && !again {
		return 0
	}
	n := c.counts[source][k]
	c.counts[source][k] = n + 1
	return int(n) + c.before(source, k)
}

// before is how many rows of the sources before this one have an id.
func (c *Counter) before(source int, k key) (n int) {
	for i := range source {
		n += int(c.counts[i][k])
	}
	return n
}

func (c *Counter) end(source int) {
	c.done[source] = true
	if c.repeated == nil && !slices.Contains(c.done, false) {
		c.forgetSingle()
	}
}

// forgetSingle forgets the ids that only one row has.
func (c *Counter) forgetSingle() {
	c.repeated = map[key]struct{}{}
	for i, counts := range c.counts {
		for k, n := range counts {
			if n > 1 || c.before(i, k) > 0 {
				c.repeated[k] = struct{}{}
			}
		}
	}
	for i, counts := range c.counts {
		c.counts[i] = map[key]int32{}
		for k := range c.repeated {
			if n := counts[k]; n > 0 {
				c.counts[i][k] = n
			}
		}
	}
}

// last reports whether no later source's numbers depend on this one's rows.
func (c *Counter) last(source int) bool { return source == len(c.counts)-1 }
