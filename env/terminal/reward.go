package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-run/talaria/dataset"
)

// maxReward bounds the file of a reward, in bytes.
const maxReward = 64 << 10

// scoreKey is the reward that is the attempt's score.
const scoreKey = "reward"

// rewardError tells what is wrong with the file of a reward.
type rewardError struct {
	file string
	err  error
}

func (e *rewardError) Error() string { return e.file + ": " + e.err.Error() }
func (e *rewardError) Unwrap() error { return e.err }

// parseReward parses the content of a file. The first reward is the score.
func parseReward(data []byte, parse func([]byte) ([]dataset.Reward, error)) ([]dataset.Reward, error) {
	if len(data) > maxReward {
		return nil, fmt.Errorf("it is larger than %d bytes", maxReward)
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, errors.New("it is empty")
	}
	return parse(data)
}

func reward(name string, value float64) dataset.Reward {
	return dataset.Reward{Name: name, Source: dataset.FromEnv, Value: &value, Chosen: name == scoreKey}
}

func parseText(data []byte) ([]dataset.Reward, error) {
	value, err := finite(string(data))
	if err != nil {
		return nil, err
	}
	return []dataset.Reward{reward(scoreKey, value)}, nil
}

// parseJSON takes a number, or an object of numbers with the score among them.
func parseJSON(data []byte) ([]dataset.Reward, error) {
	if data[0] != '{' {
		value, err := jsonNumber(data)
		if err != nil {
			return nil, err
		}
		return []dataset.Reward{reward(scoreKey, value)}, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	if _, ok := object[scoreKey]; !ok {
		return nil, fmt.Errorf("it has no key %q", scoreKey)
	}
	rewards := make([]dataset.Reward, 1, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value, err := jsonNumber(object[key])
		switch {
		case err != nil:
			return nil, fmt.Errorf("key %q: %w", key, err)
		case key == "":
			return nil, errors.New("it has an empty key")
		case key == scoreKey:
			rewards[0] = reward(key, value)
		default:
			rewards = append(rewards, reward(key, value))
		}
	}
	return rewards, nil
}

func jsonNumber(data []byte) (float64, error) {
	var number json.Number
	if data[0] == '"' || data[0] == 'n' {
		return 0, fmt.Errorf("%.40s is not a number", data)
	}
	if err := json.Unmarshal(data, &number); err != nil {
		return 0, err
	}
	return finite(number.String())
}

func finite(text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number that can be held", strings.ToValidUTF8(shorten(text), "?"))
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, fmt.Errorf("%s is not finite", text)
	}
	return value, nil
}

func shorten(text string) string { return text[:min(len(text), 40)] }
