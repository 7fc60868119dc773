package dataset

import (
	"encoding/binary"
	"strconv"
)

// Episode is one cell of the plan: a task under one variant, epoch and sample.
// Attempt numbers the tries at it from 0.
type Episode struct {
	ID          string // [EpisodeID]
	GroupID     string // [GroupID]: shared by all samples of the task under one variant and epoch
	Variant     string // name of the variant
	VariantHash string // hash of the variant's identity keys, as resolved for the task's source
	Task        Task
	Sample      int // 0 <= Sample < samples
	Epoch       int // 0 in a run; rises when a training worker comes round to a row again
	Attempt     int // 0 for the first try
	// Seed is the env's and the sampler's seed: a function of run seed, task
	// and sample only, so that variants are compared on equal draws.
	Seed int64
}

// GroupID identifies all samples of one task under one variant and epoch.
func GroupID(runSeed int64, t Task, variantHash string, epoch int) string {
	return ID("group", strconv.FormatInt(runSeed, 10), t.ID, strconv.Itoa(t.Occurrence), variantHash, strconv.Itoa(epoch))
}

// EpisodeID identifies one sample of a group.
func EpisodeID(groupID string, sample int) string {
	return ID("episode", groupID, strconv.Itoa(sample))
}

// ChildID identifies the ordinal-th episode that an episode delegated.
func ChildID(parentID string, ordinal int) string {
	return ID("child", parentID, strconv.Itoa(ordinal))
}

// EpisodeSeed derives the seed of a sample: 63 bits, equal across variants.
func EpisodeSeed(runSeed int64, t Task, sample int) int64 {
	sum := digest("seed", strconv.FormatInt(runSeed, 10), t.ID, strconv.Itoa(t.Occurrence), strconv.Itoa(sample))
	return int64(binary.BigEndian.Uint64(sum[:8]) >> 1)
}

// Shard is the shard in [0, n) that a task belongs to, so that groups and
// pairs stay together.
func Shard(t Task, n int) int {
	sum := digest("shard", t.ID, strconv.Itoa(t.Occurrence))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(n)) //nolint:gosec // n is positive, and so is what is below it
}

// Variant is what is constant over all episodes of one point of a sweep and
// one source of tasks. The store copies it into every attempt's row.
type Variant struct {
	Name        string         `json:"name"`
	Hash        string         `json:"hash"`
	Params      map[string]any `json:"params"` // swept key to value
	Identity    map[string]any `json:"identity"`
	ScorerHash  string         `json:"scorer_hash"`
	ConfigHash  string         `json:"config_hash"`
	ContextHash string         `json:"context_hash"`
	Env         string         `json:"env"`
	Agent       string         `json:"agent"`
	Provider    string         `json:"provider"`
	Model       string         `json:"model"`
	Sampling    Sampling       `json:"sampling"`
	Toolsets    []string       `json:"toolsets"`
	Tools       []string       `json:"tools"`
	PromptHash  string         `json:"prompt_hash"`
	ToolsHash   string         `json:"tools_hash"`
	CodeVersion string         `json:"code_version"`
	Tags        []string       `json:"tags"`
}

// Sampling is how the policy samples. Only what is set is sent: nil means
// the server's default, which is not known here.
type Sampling struct {
	Temperature *float64       `json:"temperature,omitempty"`
	TopP        *float64       `json:"top_p,omitempty"`
	MaxTokens   *int           `json:"max_tokens,omitempty"`
	Extra       map[string]any `json:"extra,omitempty"` // every other parameter, under the provider's name
}
