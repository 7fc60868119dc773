package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSecrets(t *testing.T) {
	hidden := &secrets{}
	if got := hidden.mask("nothing is secret"); got != "nothing is secret" {
		t.Errorf("without secrets: %q", got)
	}
	for _, value := range []string{"", "abc", "key-1", "key-1-long", "a \"quoted\" one", "first line of key\ntrue\nlast line of key\n"} {
		hidden.add(value)
	}
	for _, c := range []struct{ name, text, want string }{
		{"too short", "abc", "abc"},
		{"plain", "<key-1>", "<[secret]>"},
		{"begins like another", "<key-1-long>", "<[secret]>"},
		{"quoted by a log", `msg="a \"quoted\" one"`, `msg="[secret]"`},
		{"of many lines", "<first line of key\ntrue\nlast line of key>", "<[secret]>"},
		{"of many lines, quoted", `<first line of key\ntrue\nlast line of key>`, `<[secret]>`},
		{"its last line", "last line of key", "[secret]"},
		{"its short line", "true", "true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, hidden.mask(c.text)); diff != "" {
				t.Errorf("masked (-want +got):\n%s", diff)
			}
		})
	}
}
