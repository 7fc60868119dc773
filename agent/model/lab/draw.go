package lab

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// draws are the random choices of one request: a function of the script's
// seed, the call id and how often that id was seen.
func (s *Script) draws(what, callID string, seen int) *rand.Rand {
	h := sha256.New()
	_, _ = h.Write([]byte(what + "\x00" + strconv.FormatInt(s.Seed, 10) + "\x00" + strconv.Itoa(seen) + "\x00" + callID)) // never fails
	sum := h.Sum(nil)
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum), binary.LittleEndian.Uint64(sum[8:])))
}

// fault is what goes wrong with the seen-th request of a call id, nil for
// nothing. The faults that a call id draws strike one after the other.
func (s *Script) fault(callID string, seen int) *Fault {
	r := s.draws("fault", callID, 0)
	for i := range s.Faults {
		if r.Float64() >= s.Faults[i].Rate {
			continue
		}
		if seen < s.Faults[i].Times {
			return &s.Faults[i]
		}
		seen -= s.Faults[i].Times
	}
	return nil
}

func (s *Script) latency(callID string, seen int) time.Duration {
	span := s.LatencyMaxMS - s.LatencyMinMS
	if s.LatencyMaxMS == 0 {
		return 0
	}
	micros := s.LatencyMinMS*1000 + s.draws("latency", callID, seen).Int64N(span*1000+1)
	return time.Duration(micros) * time.Microsecond
}

// word is one of a few words that have quotes, escapes and letters of two to
// four bytes among them, so that a client which mangles text is caught.
func word(i uint) string {
	words := [...]string{
		"the", "a", "river", "of", "small", "numbers", "runs", `"quickly"`, "past", "naïve", "engineers", "who",
		"count", "東京", "lanterns,", `back\slash`, "and", "tab\tstops;", "café", "prices", "rise", "&", "fall",
		"<twice>", "each", "day", "🙂", "while", "nobody", "asks\n", "why", "'quoted'",
	}
	return words[i%uint(len(words))]
}

// prose is text of at least n bytes; "" for n <= 0.
func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word(r.Uint()))
	}
	return b.String()
}

// fill fills a template.
func fill(template string, r *rand.Rand, turn, messages int) string {
	a, b := r.IntN(1000), r.IntN(1000)
	return strings.NewReplacer(
		"{a}", strconv.Itoa(a), "{b}", strconv.Itoa(b),
		"{turn}", strconv.Itoa(turn), "{n}", strconv.Itoa(messages),
	).Replace(template)
}

// tokens is how many tokens a text has here: one for every four bytes begun.
func tokens(text string) int64 { return int64(len(text)+3) / 4 }
