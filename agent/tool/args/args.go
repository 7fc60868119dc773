// Package args reads the arguments of tool calls: [Parse] judges the text that
// a model sampled, [Decode] fills a tool's parameters.
package args

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrCut marks arguments that stop in the middle: the model ran out of tokens,
// and what it meant is not known. They must never be executed.
var ErrCut = errors.New("the arguments are cut off")

// Parse returns the arguments of a call as a JSON object. No arguments are the
// empty object. The error wraps [ErrCut] or says for the model what is wrong.
func Parse(raw string) (json.RawMessage, error) {
	text := strings.TrimSpace(raw)
	if text == "" {
		return json.RawMessage("{}"), nil
	}
	object := json.RawMessage(text)
	if json.Valid(object) {
		if object[0] != '{' {
			return nil, errors.New("the arguments have to be a JSON object, {\"name\": value}")
		}
		return object, nil
	}
	if end := object[len(object)-1]; end != '}' && end != ']' {
		return nil, ErrCut
	}
	return nil, fmt.Errorf("the arguments are not valid JSON: %w", syntaxError(object))
}

func syntaxError(text []byte) error {
	var v json.RawMessage
	return json.Unmarshal(text, &v)
}

// Decode decodes the arguments of a call into a pointer to a struct of
// parameters. Unknown parameters are an error. Errors are sentences for the
// model.
func Decode(arguments json.RawMessage, into any) error {
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		return nil
	}
	if e := new(json.UnmarshalTypeError); errors.As(err, &e) && e.Field != "" {
		return fmt.Errorf("parameter %q has to be of type %s, not %s", e.Field, e.Type, e.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
