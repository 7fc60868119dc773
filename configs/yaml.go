package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Bounds of a document, so that no file can make loading expensive. Aliases
// count with what they stand for.
const (
	maxBytes = 4 << 20
	maxDepth = 64
	maxNodes = 100_000
)

// parseYAML parses exactly one document. at names the file and its folder.
func parseYAML(at place, data []byte) (*value, error) {
	if err := checkText(at, data); err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, problem{at: at, msg: "the file is empty; a config begins with version: 1"}
	} else if err != nil {
		return nil, syntaxProblem(at, data, err)
	}
	if err := dec.Decode(&next); err == nil {
		at.line = next.Line
		return nil, problem{at: at, msg: "a second document begins here; a config is one document, remove the ---"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxProblem(at, data, err)
	}
	return convertDocument(at, &doc)
}

// parseValue parses the value of a flag.
func parseValue(at place, raw string) (*value, error) {
	if strings.TrimSpace(raw) == "" {
		return &value{at: at}, nil
	}
	v, err := parseYAML(at, []byte(raw))
	if err != nil {
		return nil, err
	}
	v.forget()
	return v, nil
}

// forget removes the lines: within the value of a flag they mean nothing.
func (v *value) forget() {
	v.at.line = 0
	for _, e := range v.items {
		e.forget()
	}
	for i := range v.entries {
		v.entries[i].at.line = 0
		v.entries[i].value.forget()
	}
}

func checkText(at place, data []byte) error {
	if len(data) > maxBytes {
		return problem{at: at, msg: fmt.Sprintf("the file has %d bytes; a config has at most %d", len(data), maxBytes)}
	}
	line := 1
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		at.line = line
		switch {
		case r == utf8.RuneError && n == 1:
			return problem{at: at, msg: "not valid UTF-8; save the file as UTF-8"}
		case r == '\n':
			line++
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return problem{at: at, msg: fmt.Sprintf("control character %U; remove it or write it as an escape in double quotes", r)}
		}
		i += n
	}
	return nil
}

var yamlError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

// hint explains one of the parser's messages, "" where there is nothing to add.
func hint(message string) string {
	for _, h := range []struct{ part, hint string }{
		{"mapping values are not allowed", `quote a value that contains ": ", and check the indentation`},
		{"cannot start any token", "indent with spaces, not tabs; quote a value that begins with @, ` or %"},
		{"tab character", "indent with spaces, not tabs"},
		{"did not find expected key", "check the indentation in the block that begins here; quote a value that begins with {, [ or * and goes on behind it"},
		{"unexpected end of stream", "a quote is not closed"},
		{"unknown escape character", `write a backslash as \\ in double quotes, or use single quotes`},
		{"could not find expected ':'", `a key is followed by ": "`},
		{"',' or ']'", "the list that begins here is not closed"},
		{"',' or '}'", "the object that begins here is not closed; quote a value that begins with {"},
	} {
		if strings.Contains(message, h.part) {
			return "; " + h.hint
		}
	}
	return ""
}

func syntaxProblem(at place, data []byte, err error) error {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		return problem{at: at, msg: "not valid YAML: " + err.Error()}
	}
	at.line = errorLine(data, m[1], m[2])
	return problem{at: at, msg: "not valid YAML: " + m[2] + hint(m[2])}
}

// errorLine corrects the parser's line. It counts lines from 0 where the
// grammar is violated and from 1 where a token is, and leaves out the first.
func errorLine(data []byte, digits, msg string) int {
	if name, ok := strings.CutPrefix(msg, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		if i := bytes.Index(data, []byte("*"+name)); i >= 0 {
			return 1 + bytes.Count(data[:i], []byte("\n"))
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 1
	}
	if strings.Contains(msg, "did not find expected") {
		n++
	}
	return n
}

// converter turns yaml nodes into values and counts them.
type converter struct {
	at    place
	nodes int
	open  map[*yaml.Node]bool // anchors being expanded
	problems
}

func convertDocument(at place, doc *yaml.Node) (*value, error) {
	c := &converter{at: at, open: map[*yaml.Node]bool{}}
	v := c.convert(doc.Content[0], "", 0)
	if err := c.err(); err != nil {
		return nil, err
	}
	return v, nil
}

func (c *converter) convert(n *yaml.Node, key string, depth int) *value {
	at := c.at
	at.line = n.Line
	v := &value{at: at}
	c.nodes++
	if depth > maxDepth || c.nodes > maxNodes {
		if c.nodes <= maxNodes+1 {
			c.add(at, "", "the document is too deep or too large; it may have %d levels and %d values", maxDepth, maxNodes)
		}
		c.nodes = max(c.nodes, maxNodes+1) // one report is enough
		return v
	}
	switch n.Kind {
	case yaml.AliasNode:
		return c.alias(n, key, depth)
	case yaml.MappingNode:
		v.kind = object
		c.mapping(v, n, key, depth)
	case yaml.SequenceNode:
		v.kind = list
		for i, e := range n.Content {
			v.items = append(v.items, c.convert(e, join(key, strconv.Itoa(i)), depth+1))
		}
	case yaml.ScalarNode, yaml.DocumentNode:
		c.scalar(v, n, key)
	}
	return v
}

// alias puts a copy of what an anchor stands for where the alias stands.
func (c *converter) alias(n *yaml.Node, key string, depth int) *value {
	at := c.at
	at.line = n.Line
	if c.open[n.Alias] {
		c.add(at, key, "the anchor &%s contains itself", n.Value)
		return &value{at: at}
	}
	c.open[n.Alias] = true
	defer delete(c.open, n.Alias)
	return c.convert(n.Alias, key, depth+1)
}

func (c *converter) mapping(v *value, n *yaml.Node, key string, depth int) {
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, e := n.Content[i], n.Content[i+1]
		at := c.at
		at.line = k.Line
		if k.ShortTag() == "!!merge" {
			c.add(at, key, "merge keys (<<) are not supported; write the keys out, or use an alias as a whole value")
			continue
		}
		if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!null" {
			c.add(at, key, "a key must be text")
			continue
		}
		if first, ok := lines[k.Value]; ok {
			c.add(at, join(key, k.Value), "the key is already on line %d; remove one of them", first)
			continue
		}
		lines[k.Value] = k.Line
		child := c.convert(e, join(key, k.Value), depth+1)
		v.entries = append(v.entries, entry{key: k.Value, at: at, value: child})
	}
}

func (c *converter) scalar(v *value, n *yaml.Node, key string) {
	v.raw = n.Value
	var err error
	switch tag := n.ShortTag(); tag {
	case "!!null":
		v.kind = null
	case "!!bool":
		v.kind = boolean
		err = n.Decode(&v.bool)
	case "!!int", "!!float":
		err = c.number(v, n, key)
	case "!!str", "!!timestamp":
		v.kind = text
	default:
		c.add(v.at, key, "the tag %s is not supported; remove it", tag)
	}
	if err != nil {
		c.add(v.at, key, "%s is not what its tag says; remove the tag", v.describe())
	}
}

func (c *converter) number(v *value, n *yaml.Node, key string) error {
	v.kind = integer
	if n.ShortTag() == "!!int" && n.Decode(&v.int) == nil {
		return nil
	}
	v.kind = float
	if err := n.Decode(&v.float); err != nil {
		return err
	}
	if math.IsNaN(v.float) || math.IsInf(v.float, 0) {
		v.float = 0
		c.add(v.at, key, "%s is not a finite number", n.Value)
	}
	return nil
}
