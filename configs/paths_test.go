package configs

import (
	"path/filepath"
	"testing"
)

func TestAbsolutePath(t *testing.T) {
	dir := filepath.FromSlash("/configs")
	tests := []struct{ name, path, want string }{
		{"relative", "a.jsonl", filepath.Join(dir, "a.jsonl")},
		{"absolute", filepath.FromSlash("/x/a.jsonl"), filepath.FromSlash("/x/a.jsonl")},
		{"embedded", "bundled:quickstart", "bundled:quickstart"},
		{"a dataset on a hub", "hf://openai/gsm8k?split=test", "hf://openai/gsm8k?split=test"},
		{"task folders", "harbor:tasks", "harbor:" + filepath.Join(dir, "tasks")},
		{"task folders, absolute", "harbor:" + filepath.FromSlash("/x/tasks"), "harbor:" + filepath.FromSlash("/x/tasks")},
		{"none", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := absolutePath(tt.path, dir); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
