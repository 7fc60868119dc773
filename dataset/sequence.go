package dataset

// Sequence is one uninterrupted context as the inference server tokenised it,
// which trainers read. TokenIDs, LossMask and Logprobs have equal lengths;
// Logprobs is 0 where LossMask is false. No text is ever re-encoded to make one.
type Sequence struct {
	Number          int // from 0 within the attempt
	Parent          *int
	Reason          string // start, template, compaction, branch
	Agent           string
	TokenIDs        []int32
	LossMask        []bool
	Logprobs        []float32
	Turns           []SequenceTurn
	NPrompt         int
	History         string // append, render
	LogprobMode     string
	LogprobsExact   bool
	Tokenizer       string
	TemplateHash    string
	Verdict         string // exact, branched, quarantined
	VerdictDetail   string
	RefLogprobs     []float32
	TeacherK        *int32
	TeacherIDs      []int32
	TeacherLogprobs []float32
	RoutedExperts   []byte
}

// SequenceTurn is one sampled stretch of a sequence: tokens [Start, End), made
// by the message at Position.
type SequenceTurn struct {
	Start, End, Position int32
	SpanID               string
	PolicyVersion        *int64
	FinishReason         string
	Reward               *float64
}
