package main

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

// A closed pipe ends nothing: the command exits with its own code.
func TestClosedPipe(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want int
	}{
		{"results", []string{"completion", "bash"}, exitOK},
		{"errors", []string{"completion", "tcsh"}, exitUsage},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			reader.Close()
			cmd := exec.CommandContext(t.Context(), "talaria", tt.args...)
			cmd.Stdout, cmd.Stderr = writer, writer
			err = cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != tt.want {
				t.Errorf("got exit code %d (%v), want %d", got, err, tt.want)
			}
		})
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestEnduringReportsOtherErrors(t *testing.T) {
	full := errors.New("disk full")
	w := &enduring{w: failingWriter{full}}
	for range 2 {
		if _, err := w.Write([]byte("row\n")); !errors.Is(err, full) {
			t.Errorf("got error %v, want %v", err, full)
		}
	}
}
