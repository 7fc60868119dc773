//go:build !cgo

package query

import (
	"errors"
	"testing"
)

func TestNotBuiltIn(t *testing.T) {
	if _, err := Open(t.Context(), nil, Options{}); !errors.Is(err, ErrNotBuiltIn) {
		t.Errorf("got %v, want %v", err, ErrNotBuiltIn)
	}
}
