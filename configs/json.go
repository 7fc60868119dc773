package configs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// parseJSON parses a document written by [value.appendJSON]. The order of keys
// is kept: the order of a sweep is part of a config.
func parseJSON(at place, data []byte) (*value, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := decodeJSON(dec, at, 0)
	if err != nil {
		return nil, problem{at: at, msg: "not a config as JSON: " + err.Error()}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, problem{at: at, msg: "not a config as JSON: there is more after its end"}
	}
	return v, nil
}

func decodeJSON(dec *json.Decoder, at place, depth int) (*value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("more than %d levels", maxDepth)
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	v := &value{at: at}
	switch tok := tok.(type) {
	case json.Delim:
		return v, decodeContainer(dec, v, tok, depth)
	case bool:
		v.kind, v.bool, v.raw = boolean, tok, strconv.FormatBool(tok)
	case json.Number:
		return v, v.setNumber(tok.String())
	case string:
		v.kind, v.raw = text, tok
	}
	return v, nil
}

func decodeContainer(dec *json.Decoder, v *value, open json.Delim, depth int) error {
	v.kind = object
	if open == '[' {
		v.kind = list
	}
	for dec.More() {
		key := ""
		if v.kind == object {
			tok, err := dec.Token()
			if err != nil {
				return err
			}
			key, _ = tok.(string) // within an object the decoder yields nothing else
			if v.get(key) != nil {
				return fmt.Errorf("the key %q is there twice", key)
			}
		}
		e, err := decodeJSON(dec, v.at, depth+1)
		if err != nil {
			return err
		}
		if v.kind == list {
			v.items = append(v.items, e)
			continue
		}
		v.entries = append(v.entries, entry{key: key, at: v.at, value: e})
	}
	_, err := dec.Token()
	return err
}

func (v *value) setNumber(s string) error {
	v.raw = s
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		v.kind, v.int = integer, i
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	v.kind, v.float = float, f
	return err
}

// appendJSON appends the value as indented JSON, keys in their order.
func (v *value) appendJSON(b []byte, indent string) []byte {
	inner := indent + "  "
	switch v.kind {
	case null:
		return append(b, "null"...)
	case boolean:
		return strconv.AppendBool(b, v.bool)
	case integer:
		return strconv.AppendInt(b, v.int, 10)
	case float:
		return append(b, floatJSON(v.float)...)
	case text:
		return append(b, quoteJSON(v.raw)...)
	case list:
		b = append(b, '[')
		for i, e := range v.items {
			b = appendSeparator(b, i, inner)
			b = e.appendJSON(b, inner)
		}
		return appendEnd(b, len(v.items), indent, ']')
	case object:
		b = append(b, '{')
		for i, e := range v.entries {
			b = appendSeparator(b, i, inner)
			b = append(b, quoteJSON(e.key)...)
			b = append(b, ": "...)
			b = e.value.appendJSON(b, inner)
		}
		return appendEnd(b, len(v.entries), indent, '}')
	}
	panic(fmt.Sprintf("configs: value of unknown kind %d", v.kind))
}

func appendSeparator(b []byte, i int, indent string) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return append(append(b, '\n'), indent...)
}

func appendEnd(b []byte, n int, indent string, end byte) []byte {
	if n > 0 {
		b = append(append(b, '\n'), indent...)
	}
	return append(b, end)
}

// floatJSON keeps a decimal point, so that reading it back gives a float.
func floatJSON(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

func quoteJSON(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
