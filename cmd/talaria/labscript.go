package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// labScript makes the script: flags override the file.
func labScript(opts labServeOptions) (lab.Script, error) {
	script, err := readLabScript(opts.script)
	if err != nil {
		return script, err
	}
	for _, pair := range opts.set {
		if script, err = setLabKey(script, pair); err != nil {
			return script, err
		}
	}
	if opts.seed != nil {
		script.Seed = *opts.seed
	}
	if opts.latency != "" {
		script.LatencyMinMS, script.LatencyMaxMS, err = parseLatency(opts.latency)
	}
	return script, err
}

func readLabScript(path string) (lab.Script, error) {
	if path == "" {
		return lab.Script{}, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return lab.Script{}, err
	}
	script, err := lab.ReadScript(file)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	_ = file.Close() // it was only read
	return script, err
}

// setLabKey sets the key of a pair key=value, whose dots lead into objects. A
// value that is not JSON is a string.
func setLabKey(script lab.Script, pair string) (lab.Script, error) {
	key, value, ok := strings.Cut(pair, "=")
	if !ok {
		return script, fmt.Errorf("--set %s: want KEY=VALUE", pair)
	}
	raw := json.RawMessage(value)
	if !json.Valid(raw) {
		raw = encodeJSON(value)
	}
	changed, err := setJSON(encodeJSON(script), strings.Split(key, "."), raw)
	if err == nil {
		script, err = lab.ReadScript(bytes.NewReader(changed))
	}
	if err != nil {
		err = fmt.Errorf("--set %s: %w", pair, err)
	}
	return script, err
}

// setJSON is object with the value at path.
func setJSON(object json.RawMessage, path []string, value json.RawMessage) (json.RawMessage, error) {
	if len(path) == 0 {
		return value, nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil || fields == nil {
		return nil, fmt.Errorf("there is no object that has a key %q", path[0])
	}
	inner, err := setJSON(fields[path[0]], path[1:], value)
	if err != nil {
		return nil, err
	}
	fields[path[0]] = inner
	return encodeJSON(fields), nil
}

func encodeJSON(v any) json.RawMessage {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic("talaria: encoding a lab script: " + err.Error())
	}
	return encoded
}

// parseLatency reads "5ms-20ms", or "5ms" for both ends, as milliseconds.
func parseLatency(text string) (low, high int64, err error) {
	from, to, ok := strings.Cut(text, "-")
	if !ok {
		to = from
	}
	least, err := time.ParseDuration(from)
	if err != nil {
		return 0, 0, fmt.Errorf("--latency %s: %w", text, err)
	}
	most, err := time.ParseDuration(to)
	if err != nil {
		return 0, 0, fmt.Errorf("--latency %s: %w", text, err)
	}
	if least < 0 || most < least {
		return 0, 0, fmt.Errorf("--latency %s: want MIN-MAX", text)
	}
	return least.Milliseconds(), most.Milliseconds(), nil
}
