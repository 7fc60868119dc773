package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds how deep a row may be nested: readers of the recorded rows
// recurse through them.
const maxDepth = 200

// decodeRow decodes a line as a JSON object. Unlike encoding/json it refuses
// duplicate keys and invalid UTF-8, of which one or the other would be lost
// silently, and bounds the depth. Numbers stay as they are written.
func decodeRow(line []byte) (map[string]any, error) {
	if !utf8.Valid(line) {
		return nil, fmt.Errorf("byte %d is not valid UTF-8", invalidUTF8(line))
	}
	if err := checkSyntax(line); err != nil {
		return nil, err
	}
	c := cursor{text: line}
	v, err := c.value(0)
	if err != nil {
		return nil, err
	}
	row, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a row is a JSON object, not %s", describeJSON(line))
	}
	return row, nil
}

func invalidUTF8(line []byte) int {
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRune(line[i:])
		if r == utf8.RuneError && n == 1 {
			return i + 1
		}
		i += n
	}
	return len(line)
}

// checkSyntax reports where a line stops being JSON, counted in bytes from 1.
func checkSyntax(line []byte) error {
	if json.Valid(line) {
		return nil
	}
	var raw json.RawMessage
	err := json.Unmarshal(line, &raw)
	syntax := new(json.SyntaxError)
	if !errors.As(err, &syntax) {
		return fmt.Errorf("not JSON: %w", err)
	}
	opened := bytes.HasSuffix(line, []byte("{")) || bytes.HasSuffix(line, []byte("["))
	if int(syntax.Offset) >= len(line) && opened {
		return errors.New("the object does not end on its line; write one object per line, for example with jq -c")
	}
	return fmt.Errorf("not JSON at byte %d: %w", syntax.Offset, err)
}

func describeJSON(line []byte) string {
	switch line[0] {
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}
