package scripted

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strconv"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// draws are the random choices of a try: a function of the options' seed, the
// call id and the number of the try.
func (m *Model) draws(what string, req *model.Request) *rand.Rand {
	return seeded(what, m.o.Seed, req.CallID, req.Try)
}

func seeded(what string, seed int64, name string, n int) *rand.Rand {
	sum := sha256.Sum256([]byte(what + "\x00" + strconv.FormatInt(seed, 10) + "\x00" + strconv.Itoa(n) + "\x00" + name))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:16])))
}

// maxToolTurns bounds how often random calls tools in an episode.
const maxToolTurns = 3

// random draws from the episode's seed, which is equal across variants.
func (m *Model) random(req *model.Request) (dataset.Message, error) {
	seed := int64(0)
	if req.Episode != nil {
		seed = req.Episode.Seed
	}
	n := turn(req)
	r := seeded("random", seed, "", n)
	if tool := offered(req, terminal); tool != nil && req.Episode != nil && req.Episode.Task.Files != nil {
		if n == 0 || n < maxToolTurns && r.IntN(2) == 0 {
			return call(req, tool, harmless(r)), nil
		}
		return say("Done."), nil
	}
	if tool := otherThan(req, submitAnswer); tool != nil && n < maxToolTurns && r.IntN(2) == 0 {
		return call(req, tool, strconv.Itoa(r.IntN(100))+" + "+strconv.Itoa(r.IntN(100))), nil
	}
	text := guess(r)
	if tool := offered(req, submitAnswer); tool != nil && r.IntN(2) == 0 {
		return call(req, tool, text), nil
	}
	return say(text), nil
}

// harmless is a command that does nothing outside of its working directory and
// prints nothing that differs from run to run.
func harmless(r *rand.Rand) string {
	commands := [...]string{
		"ls -a", "find . -type f | sort | head -n 20", "wc -c -- * 2>/dev/null", "touch done", "false",
		"mkdir -p scratch && cp -- *.txt scratch/ 2>/dev/null", "sort -- *.txt 2>/dev/null | uniq -c | head",
		"echo hello > hello.txt", "head -n 3 -- * 2>/dev/null", "cat -- *.txt 2>/dev/null | tail -n 5",
	}
	return commands[r.IntN(len(commands))]
}

func guess(r *rand.Rand) string {
	if r.IntN(2) == 0 {
		return strconv.Itoa(r.IntN(1000))
	}
	words := [...]string{"amber", "basalt", "cedar", "dune", "ember", "fjord", "garnet", "harbor", "indigo", "juniper"}
	return words[r.IntN(len(words))]
}
