package envtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"unicode/utf8"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

func (s transcript) validate() error {
	if err := validateFirst(s.First); err != nil {
		return fmt.Errorf("messages of Reset: %w", err)
	}
	if err := validateTools(s.Tools); err != nil {
		return err
	}
	for i, r := range s.Results {
		if err := validateResult(r); err != nil {
			return fmt.Errorf("result %d of Step: %w", i, err)
		}
	}
	return validateRewards(s.Scores)
}

// validateFirst wants a conversation that it is the model's turn to go on with.
func validateFirst(messages []dataset.Message) error {
	if len(messages) == 0 {
		return errors.New("there are none")
	}
	if last := messages[len(messages)-1]; last.Role != dataset.User && last.Role != dataset.ToolRole {
		return fmt.Errorf("the last is of role %q: the model has nothing to reply to", last.Role)
	}
	return validateMessages(messages)
}

func validateResult(r env.Result) error {
	if !r.Done && len(r.Messages) == 0 {
		return errors.New("neither done nor a message")
	}
	if err := validateMessages(r.Messages); err != nil {
		return err
	}
	return validateRewards(r.Rewards)
}

func validateMessages(messages []dataset.Message) error {
	for i, m := range messages {
		if err := validateMessage(m); err != nil {
			return fmt.Errorf("message %d (%s): %w", i, m.Role, err)
		}
	}
	return nil
}

func validateMessage(m dataset.Message) error {
	switch m.Role {
	case dataset.System, dataset.User, dataset.Assistant, dataset.ToolRole:
	default:
		return fmt.Errorf("unknown role %q", m.Role)
	}
	switch {
	case m.Policy:
		return errors.New("marked as sampled by the policy")
	case m.Content == "" && m.Parts == nil && len(m.ToolCalls) == 0:
		return errors.New("empty")
	case !utf8.ValidString(m.Content):
		return errors.New("content is not UTF-8")
	case m.Parts != nil && !json.Valid(m.Parts):
		return errors.New("parts are not JSON")
	case m.Role == dataset.ToolRole && m.ToolCallID == "":
		return errors.New("a tool result without the id of its call")
	}
	return nil
}

// toolName is what every provider accepts as the name of a function.
const toolName = `^[a-zA-Z0-9_-]{1,64}$`

func validateTools(tools []toolSpec) error {
	valid := regexp.MustCompile(toolName)
	seen := map[string]bool{}
	for _, t := range tools {
		switch {
		case !valid.MatchString(t.Name):
			return fmt.Errorf("tool %q: the name does not match %s", t.Name, toolName)
		case seen[t.Name]:
			return fmt.Errorf("tool %q: there are two", t.Name)
		case !t.Callable:
			return fmt.Errorf("tool %q: no function to call", t.Name)
		case !objectSchema(t.Parameters):
			return fmt.Errorf("tool %q: parameters are not the JSON schema of an object", t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}

func objectSchema(text string) bool {
	var schema struct {
		Type string `json:"type"`
	}
	return json.Unmarshal([]byte(text), &schema) == nil && schema.Type == "object"
}

func validateRewards(rewards []dataset.Reward) error {
	for i, r := range rewards {
		switch {
		case r.Name == "":
			return fmt.Errorf("reward %d has no name", i)
		case r.Value != nil && (math.IsNaN(*r.Value) || math.IsInf(*r.Value, 0)):
			return fmt.Errorf("reward %q is not finite: %v", r.Name, *r.Value)
		}
	}
	return nil
}
