package configs

import (
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// Version is the version of the config format that this release reads.
const Version = 1

// Run is the config of a run: complete, checked and read-only.
//
// The tag yaml names a key, class its class (see the package comment), path
// marks a file's path, min and max bound a number, example shows a value in
// an error message.
type Run struct {
	Version int      `yaml:"version" class:"operation"`
	Name    string   `yaml:"name" class:"operation"` // of the run's directory; default: the file's name
	Note    string   `yaml:"note" class:"operation"`
	Tags    []string `yaml:"tags" class:"operation" example:"[first, baseline]"`
	Seed    int64    `yaml:"seed" class:"identity"`

	Tasks    []Tasks  `yaml:"tasks" example:"[{path: tasks.jsonl}]"` // at least one
	Env      Env      `yaml:"env" example:"{name: answer}"`          // of the sources that have none of their own
	Template string   `yaml:"prompt" class:"identity" example:"{question}"`
	FewShot  *FewShot `yaml:"few_shot" example:"{path: shots.jsonl, n: 4}"` // nil: none
	Sandbox  Sandbox  `yaml:"sandbox"`                                      // of the envs that have commands run
	Agent    Agent    `yaml:"agent"`
	Samples  int      `yaml:"samples" class:"selection" min:"1" max:"1000000"` // episodes per task and variant
	Score    []Scorer `yaml:"score" example:"[{name: exact}]"`                 // of the sources that have none of their own

	Limits Limits `yaml:"limits"`
	Prices string `yaml:"prices" class:"operation" path:"file"` // a file that overrides the embedded prices; "": none
	Sweep  Sweep  `yaml:"sweep" class:"selection"`
	Out    string `yaml:"out" class:"operation"` // parent of the run's directory

	doc *document
}

// Tasks is one source of tasks as written. [Run.Sources] resolves it.
type Tasks struct {
	Name     string            `yaml:"name" class:"selection"` // the dataset's name in the rows; default: the file's name
	Path     string            `yaml:"path" class:"selection" path:"file" example:"tasks.jsonl"`
	Split    string            `yaml:"split" class:"selection"`
	Columns  map[string]string `yaml:"columns" class:"selection" example:"{input: question, target: answer}"`
	Keep     Keep              `yaml:"keep" class:"selection"`
	Where    string            `yaml:"where" class:"selection" example:"level > 2 and topic in ['algebra', 'geometry']"` // a condition on rows; "": all
	Shuffle  Shuffle           `yaml:"shuffle" class:"selection"`
	Limit    int               `yaml:"limit" class:"selection" min:"0"` // 0: none
	OnBadRow string            `yaml:"on_bad_row" class:"selection" example:"skip"`
	Env      *Env              `yaml:"env" example:"{name: answer}"`    // nil: the run's
	Score    []Scorer          `yaml:"score" example:"[{name: exact}]"` // nil: the run's
}

// Keep says which columns become meta_<name> columns of the tasks table.
type Keep struct {
	All   bool
	Names []string
}

// Values of [Tasks.OnBadRow].
const (
	OnBadRowFail = "fail"
	OnBadRowSkip = "skip"
)

// Env is an env's name and its parameters, which the env itself decodes.
type Env struct {
	Name   string `yaml:"name" class:"identity" example:"answer"`
	Params Params `yaml:",rest" class:"identity"`
}

// Scorer is a scorer's name, how it finds the answer, and its parameters.
type Scorer struct {
	Name          string `yaml:"name" class:"selection" example:"exact"`
	Extract       string `yaml:"extract" class:"selection" example:"last_number"`
	TargetExtract string `yaml:"target_extract" class:"selection" example:"\"####\""`
	Chosen        *bool  `yaml:"chosen" class:"selection"` // nil: the first of the list, unless another is chosen
	Params        Params `yaml:",rest" class:"selection"`
}

// FewShot draws N rows of a JSONL file, the same ones for all tasks.
type FewShot struct {
	Path   string `yaml:"path" class:"operation" path:"file" example:"shots.jsonl"`
	N      int    `yaml:"n" class:"identity" min:"1"`
	Seed   int64  `yaml:"seed" class:"identity"`
	SHA256 string `yaml:"sha256" class:"identity"` // of the file; may be given to pin it
}

// Sandbox is where the commands of an episode run. A limit of 0 is none.
type Sandbox struct {
	Backend string        `yaml:"backend" class:"identity" example:"local"`
	Network string        `yaml:"network" class:"identity" example:"none"` // none or host
	Memory  Size          `yaml:"memory" class:"identity" min:"0"`         // of all processes together
	Disk    Size          `yaml:"disk" class:"identity" min:"0"`           // of the files that they write
	Pids    int           `yaml:"pids" class:"identity" min:"0" max:"1000000"`
	Timeout time.Duration `yaml:"timeout" class:"identity" min:"0"` // of one command that sets none
	// AllowUnconfined says for which tasks commands may run outside of a sandbox
	// where this machine has none.
	AllowUnconfined Unconfined `yaml:"allow_unconfined" class:"operation"`
}

// Agent is the policy: a model, what it may do, and how it samples.
type Agent struct {
	Kind         string    `yaml:"kind" class:"identity" example:"tools"`
	Model        string    `yaml:"model" class:"identity" example:"openai/gpt-4o-mini"`           // preset/model
	BaseURL      BaseURLs  `yaml:"base_url" class:"operation" example:"http://127.0.0.1:8000/v1"` // none: the preset's
	APIKeyEnv    *string   `yaml:"api_key_env" class:"operation" example:"OPENAI_API_KEY"`        // name of a variable; see [Agent.Key]
	APIKeyFile   string    `yaml:"api_key_file" class:"operation" path:"file"`
	Toolsets     []string  `yaml:"toolsets" class:"identity" example:"[answer, math]"`
	SystemPrompt string    `yaml:"system_prompt" class:"identity"`
	Sampling     Sampling  `yaml:"sampling"`
	Reasoning    Reasoning `yaml:"reasoning"`
	ExtraBody    ExtraBody `yaml:"extra_body"`
	Replay       *Replay   `yaml:"replay"`   // of scripted/replay
	Simulate     *Simulate `yaml:"simulate"` // of scripted models
}

// Sampling is what is sent with each request. What is not set is not sent.
type Sampling struct {
	Temperature *float64 `yaml:"temperature" class:"identity" min:"0"`
	TopP        *float64 `yaml:"top_p" class:"identity" min:"0" max:"1"`
	MaxTokens   *int     `yaml:"max_tokens" class:"identity" min:"1" max:"2147483647"`
	Extra       Params   `yaml:",rest" class:"identity"` // sent under the same name
}

// Reasoning is how a model is to think before it replies.
type Reasoning struct {
	Effort string `yaml:"effort" class:"identity" example:"medium"` // none, low, medium, high, ...; "": as the server does
}

// ExtraBody is merged into the body of each request.
type ExtraBody struct {
	Members Params `yaml:",rest" class:"identity"`
}

// Dataset is the sampling as requests and rows hold it.
func (s Sampling) Dataset() dataset.Sampling {
	d := dataset.Sampling{Temperature: s.Temperature, TopP: s.TopP, MaxTokens: s.MaxTokens}
	if !s.Extra.empty() {
		d.Extra = s.Extra.Map()
	}
	return d
}

// Replay is where recorded answers are: a JSONL file with the columns of the
// source that it answers for, and a dotted path to the answer in its rows.
type Replay struct {
	Path   string `yaml:"path" class:"operation" path:"file" example:"answers.jsonl"`
	Column string `yaml:"column" class:"identity" example:"solution"`
	SHA256 string `yaml:"sha256" class:"identity"` // of the file; may be given to pin it
}

// Simulate lets a scripted model take time and fail.
type Simulate struct {
	LatencyMin  time.Duration `yaml:"latency_min" class:"operation" min:"0"`
	LatencyMax  time.Duration `yaml:"latency_max" class:"operation" min:"0"`
	FailureRate float64       `yaml:"failure_rate" class:"operation" min:"0" max:"1"`
}

// Limits bound what an episode and a run may take. A limit of 0 is none.
type Limits struct {
	Concurrency       Concurrency   `yaml:"concurrency"`
	RequestsPerMinute int           `yaml:"requests_per_minute" class:"operation" min:"0"` // to one endpoint
	TokensPerMinute   int64         `yaml:"tokens_per_minute" class:"operation" min:"0"`   // of prompts and replies, at one endpoint
	Episode           EpisodeLimits `yaml:"episode"`
	Run               RunLimits     `yaml:"run"`
	Retries           Retries       `yaml:"retries"`
	FailOnError       float64       `yaml:"fail_on_error" class:"operation" min:"0" max:"1"` // share of infra, task and unscored episodes
	Grace             time.Duration `yaml:"grace" class:"operation" min:"0"`                 // for a drain after the first signal
	DiskWait          time.Duration `yaml:"disk_wait" class:"operation" min:"0"`             // for space on a full disk
	Score             time.Duration `yaml:"score" class:"operation" min:"0"`                 // for one attempt's scorers
	Close             time.Duration `yaml:"close" class:"operation" min:"0"`                 // for closing one env
	Request           time.Duration `yaml:"request" class:"operation" min:"0"`               // that one HTTP request may be silent
}

// Concurrency is how much is done at once.
type Concurrency struct {
	Episodes  int `yaml:"episodes" class:"operation" min:"1" max:"1000000"`
	Requests  int `yaml:"requests" class:"operation" min:"1" max:"1000000"`
	Sandboxes int `yaml:"sandboxes" class:"operation" min:"1" max:"1000000"`
	Grading   int `yaml:"grading" class:"operation" min:"1" max:"1000000"`
}

// EpisodeLimits end an episode; the state that it left is scored.
type EpisodeLimits struct {
	Time    time.Duration `yaml:"time" class:"identity" min:"0"` // working time
	Turns   int           `yaml:"turns" class:"identity" min:"0"`
	Tokens  int64         `yaml:"tokens" class:"identity" min:"0"`
	CostUSD float64       `yaml:"cost_usd" class:"identity" min:"0"`
	Bytes   Size          `yaml:"bytes" class:"identity" min:"0"` // of the recorded trajectory
}

// RunLimits end a run, over all its invocations.
type RunLimits struct {
	Time    time.Duration `yaml:"time" class:"operation" min:"0"`
	CostUSD float64       `yaml:"cost_usd" class:"operation" min:"0"`
	Tokens  int64         `yaml:"tokens" class:"operation" min:"0"`
}

// Retries is how often something is tried again.
type Retries struct {
	Infra    int `yaml:"infra" class:"operation" min:"0" max:"1000"`    // further attempts at an episode, over all invocations
	Requests int `yaml:"requests" class:"operation" min:"0" max:"1000"` // further tries of one model call
}
