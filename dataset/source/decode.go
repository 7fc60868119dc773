package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	v, err := decodeValue(dec, 0)
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
	var raw json.RawMessage
	err := json.Unmarshal(line, &raw)
	if err == nil {
		return nil
	}
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

// decodeValue decodes the next value. The syntax is known to be valid.
func decodeValue(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the row is nested more than %d levels deep", maxDepth)
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	switch tok {
	case json.Delim('{'):
		return decodeObject(dec, depth)
	case json.Delim('['):
		return decodeList(dec, depth)
	}
	return tok, nil
}

func decodeObject(dec *json.Decoder, depth int) (any, error) {
	m := map[string]any{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		name, ok := tok.(string)
		if !ok {
			return nil, errors.New("not JSON: a key is not a string")
		}
		if _, ok := m[name]; ok {
			return nil, fmt.Errorf("the key %q is there twice in one object", name)
		}
		if m[name], err = decodeValue(dec, depth+1); err != nil {
			return nil, err
		}
	}
	return m, closing(dec)
}

func decodeList(dec *json.Decoder, depth int) (any, error) {
	l := []any{}
	for dec.More() {
		v, err := decodeValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	return l, closing(dec)
}

func closing(dec *json.Decoder) error {
	if _, err := dec.Token(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("not JSON: %w", err)
	}
	return nil
}
