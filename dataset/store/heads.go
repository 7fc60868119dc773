package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/sync/errgroup"

	"github.com/talaria-run/talaria/dataset"
)

// attemptHead is what an index needs of an attempt's row. Only these columns
// are read.
type attemptHead struct {
	EpisodeID       string  `parquet:"episode_id" json:"episode_id"`
	Attempt         int32   `parquet:"attempt" json:"attempt"`
	ParentEpisodeID *string `parquet:"parent_episode_id,optional" json:"parent_episode_id"`

	VariantHash string   `parquet:"variant_hash" json:"variant_hash"`
	ScorerHash  string   `parquet:"scorer_hash" json:"scorer_hash"`
	Outcome     string   `parquet:"outcome" json:"outcome"`
	Truncated   bool     `parquet:"truncated" json:"truncated"`
	Flags       []string `parquet:"flags,list" json:"flags"`
	Reward      *float64 `parquet:"reward,optional" json:"reward"`
	Passed      *bool    `parquet:"passed,optional" json:"passed"`

	Requests         int32  `parquet:"requests" json:"requests"`
	InputTokens      int64  `parquet:"input_tokens" json:"input_tokens"`
	CacheReadTokens  int64  `parquet:"cache_read_tokens" json:"cache_read_tokens"`
	CacheWriteTokens int64  `parquet:"cache_write_tokens" json:"cache_write_tokens"`
	OutputTokens     int64  `parquet:"output_tokens" json:"output_tokens"`
	ReasoningTokens  *int64 `parquet:"reasoning_tokens,optional" json:"reasoning_tokens"`
	CostNanoUSD      *int64 `parquet:"cost_nanousd,optional" json:"cost_nanousd"`
	CostKnownNanoUSD int64  `parquet:"cost_known_nanousd" json:"cost_known_nanousd"`
	UnpricedCalls    int32  `parquet:"unpriced_calls" json:"unpriced_calls"`
	UnreportedCalls  int32  `parquet:"unreported_calls" json:"unreported_calls"`
	AuxInputTokens   int64  `parquet:"aux_input_tokens" json:"aux_input_tokens"`
	AuxOutputTokens  int64  `parquet:"aux_output_tokens" json:"aux_output_tokens"`
	AuxCostNanoUSD   *int64 `parquet:"aux_cost_nanousd,optional" json:"aux_cost_nanousd"`
	EndedAt          int64  `parquet:"ended_at,timestamp(microsecond)" json:"ended_at"`

	// Extra is read from a part only for attempts with unreported calls.
	Extra string `parquet:"-" json:"extra"`
}

// lostHead is what bounds the unreported calls of an attempt.
type lostHead struct {
	Extra string `parquet:"extra"`
}

// rewardHead is what an index needs of a reward's row.
type rewardHead struct {
	EpisodeID  string   `parquet:"episode_id" json:"episode_id"`
	Attempt    int32    `parquet:"attempt" json:"attempt"`
	Value      *float64 `parquet:"value,optional" json:"value"`
	Passed     *bool    `parquet:"passed,optional" json:"passed"`
	Chosen     bool     `parquet:"chosen" json:"chosen"`
	ScorerHash string   `parquet:"scorer_hash" json:"scorer_hash"`
	CreatedAt  int64    `parquet:"created_at,timestamp(microsecond)" json:"created_at"`
}

func (h *attemptHead) usage() dataset.Usage {
	return dataset.Usage{
		Input: h.InputTokens, CacheRead: h.CacheReadTokens, CacheWrite: h.CacheWriteTokens,
		Output: h.OutputTokens, Reasoning: h.ReasoningTokens,
	}
}

func (h *attemptHead) books() dataset.Books {
	b := dataset.Books{
		Requests: int(h.Requests), Usage: h.usage(), CostKnown: h.CostKnownNanoUSD,
		Unpriced: int(h.UnpricedCalls), Unreported: int(h.UnreportedCalls),
	}
	if h.AuxInputTokens+h.AuxOutputTokens > 0 || h.AuxCostNanoUSD != nil {
		b.Add(dataset.Call{
			Phase: dataset.CallEnd, Agent: dataset.AgentJudge, CostNanoUSD: h.AuxCostNanoUSD,
			Usage: &dataset.Usage{Input: h.AuxInputTokens, Output: h.AuxOutputTokens},
		})
	}
	return b
}

func (h *attemptHead) attempt() Attempt {
	var lost dataset.Spend
	if h.UnreportedCalls > 0 && h.Extra != "" {
		lost = lostIn(h.Extra)
	}
	return Attempt{
		Lost: lost,

		EpisodeID: h.EpisodeID, Attempt: int(h.Attempt), VariantHash: h.VariantHash, ScorerHash: h.ScorerHash,
		Outcome: dataset.Outcome(h.Outcome), Flags: h.Flags, Reward: h.Reward, Passed: h.Passed,
		Truncated: h.Truncated, Usage: h.usage(), CostKnown: h.CostKnownNanoUSD,
		CostUnknown: h.CostNanoUSD == nil, Unreported: int(h.UnreportedCalls), Child: h.ParentEpisodeID != nil,
	}
}

// tallier fills an index from rows and adds up what they cost.
type tallier struct {
	index *Index
	spent dataset.Books
}

func (t *tallier) attempt(h *attemptHead) error {
	t.spent.Merge(h.books())
	return t.index.Add(h.attempt())
}

// reward takes a chosen reward in that came after its attempt's row.
func (t *tallier) reward(h *rewardHead) error {
	passed := h.Passed
	if h.Value != nil && passed == nil {
		p := *h.Value >= dataset.PassAt
		passed = &p
	}
	return t.index.Reward(h.EpisodeID, int(h.Attempt), h.ScorerHash, h.Value, passed)
}

// take takes the rows of a committed part in.
func (t *tallier) take(h *heads) error {
	for i := range h.attempts {
		if err := t.attempt(&h.attempts[i]); err != nil {
			return err
		}
	}
	for i := range h.late {
		if err := t.reward(&h.late[i]); err != nil {
			return err
		}
	}
	return nil
}

// heads are what an index needs of a part.
type heads struct {
	attempts []attemptHead
	late     []rewardHead // chosen ones that came after their attempt's row
}

func readHeads(fsys FS, dir string, p Part) (*heads, error) {
	h := new(heads)
	// When the attempts of this part ended that came with a reward: a reward
	// that is not younger is the attempt's own.
	ended := map[attemptKey]int64{}
	unreported := false
	err := eachRow(fsys, dir, p, tAttempts, func(a *attemptHead) error {
		unreported = unreported || a.UnreportedCalls > 0
		if a.Reward != nil {
			ended[attemptKey{a.EpisodeID, a.Attempt}] = a.EndedAt
		}
		h.attempts = append(h.attempts, *a)
		return nil
	})
	if err == nil && unreported {
		err = h.readLost(fsys, dir, p)
	}
	if err != nil {
		return nil, err
	}
	return h, eachRow(fsys, dir, p, tRewards, func(r *rewardHead) error {
		end, own := ended[attemptKey{r.EpisodeID, r.Attempt}]
		if r.Chosen && (!own || r.CreatedAt > end) {
			h.late = append(h.late, *r)
		}
		return nil
	})
}

// parts takes parts in, in order. It reads on all cores: of a million attempts
// that takes seconds, before a run goes on.
func (t *tallier) parts(parts []Part, read func(Part) (*heads, error)) error {
	for some := range slices.Chunk(parts, runtime.GOMAXPROCS(0)) {
		all := make([]*heads, len(some))
		var reading errgroup.Group
		for i, p := range some {
			reading.Go(func() (err error) {
				all[i], err = read(p)
				return err
			})
		}
		if err := reading.Wait(); err != nil {
			return err
		}
		for _, h := range all {
			if err := t.take(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// readLost reads what bounds the unreported calls of a part, once more from its
// beginning: few parts have any, and the others are spared the column.
func (h *heads) readLost(fsys FS, dir string, p Part) error {
	at := 0
	return eachRow(fsys, dir, p, tAttempts, func(l *lostHead) error {
		if h.attempts[at].UnreportedCalls > 0 {
			h.attempts[at].Extra = l.Extra
		}
		at++
		return nil
	})
}

const readRows = 256

// eachRow calls yield for each row of a table in a part, in order. T declares
// the columns to read. yield must not keep the pointer.
func eachRow[T any](fsys FS, dir string, p Part, table string, yield func(*T) error) error {
	for _, f := range p.Files {
		if f.Table != table {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := eachRowOf(fsys, path, f.Rows, yield); err != nil {
			return damagedPart(path, err)
		}
	}
	return nil
}

func eachRowOf[T any](fsys FS, path string, want int64, yield func(*T) error) error {
	return eachBatchOf(fsys, path, want, func(rows []T) error {
		for i := range rows {
			if err := yield(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachBatchOf calls yield for the rows of a file, some at a time, which are the
// callee's.
func eachBatchOf[T any](fsys FS, path string, want int64, yield func([]T) error) (err error) {
	f, err := fsys.OpenFile(path, toRead)
	if err != nil {
		return err
	}
	defer closeRead(f)
	p, err := openParquet(f)
	if err != nil {
		return err
	}
	if p.NumRows() != want {
		return fmt.Errorf("%w: it has %d rows and the manifest says %d", errMalformed, p.NumRows(), want)
	}
	return readAllRows(p, yield)
}

func readAllRows[T any](p *parquet.File, yield func([]T) error) (err error) {
	defer recovered(&err)
	r := parquet.NewGenericReader[T](p)
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		rows := make([]T, min(readRows, p.NumRows()+1)) // new ones each time: rows keep what they point to
		n, err := r.Read(rows)
		if n > 0 {
			if err := yield(rows[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func damagedPart(path string, err error) error {
	return &DamageError{
		Path: path, Err: err,
		Advice: "the manifest commits it and its journal segment is gone: restore the file from a copy of the run",
	}
}

// verify checks a committed file's length and, where deep is set, its content.
func verify(fsys FS, dir string, want PartFile, deep bool) error {
	path := filepath.Join(dir, filepath.FromSlash(want.Name))
	f, err := fsys.OpenFile(path, toRead)
	if err != nil {
		return damagedPart(path, err)
	}
	defer closeRead(f)
	size, err := f.Size()
	if err == nil && size != want.Bytes {
		err = fmt.Errorf("%w: it has %d bytes and the manifest says %d", errMalformed, size, want.Bytes)
	}
	if err == nil && deep {
		err = verifySum(f, size, want.SHA256)
	}
	if err != nil {
		return damagedPart(path, err)
	}
	return nil
}

func verifySum(f sizedReader, size int64, want string) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, size)); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return fmt.Errorf("%w: its sha256 is %s and the manifest says %s", errMalformed, got, want)
	}
	return nil
}
