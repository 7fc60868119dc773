package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/talaria-run/talaria/dataset"
)

func TestExitCode(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"nil", nil, 0},
		{"any", errors.New("disk full"), 1},
		{"usage", fmt.Errorf("reading: %w", usageErrorf("talaria run", "no such file")), 2},
		{"interrupted", fmt.Errorf("waiting: %w", dataset.ErrInterrupted), 130},
		{"coded", fmt.Errorf("run: %w", &exitCodeError{code: exitBudget, err: errors.New("budget")}), 4},
		{"usage first", errors.Join(dataset.ErrInterrupted, usageErrorf("", "bad")), 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := exitCode(tt.err); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
