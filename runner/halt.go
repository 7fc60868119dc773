package runner

import (
	"errors"
	"fmt"
	"sync"

	"github.com/talaria-run/talaria/agent/model"
)

// VariantError tells that a variant was stopped because none of its calls can
// succeed until somebody changes the setup: a refused key, an unknown model.
type VariantError struct {
	Variant string
	Err     error
}

func (e *VariantError) Error() string { return fmt.Sprintf("variant %q stopped: %v", e.Variant, e.Err) }

func (e *VariantError) Unwrap() error { return e.Err }

// halts keeps which variants are stopped, and why. Workers stop them, the feed
// and the workers ask.
type halts struct {
	names []string // by variant

	mu     sync.Mutex
	causes []error // by variant; nil: it goes on
	n      int
}

func newHalts(plan Plan) *halts {
	h := &halts{causes: make([]error, len(plan.Cells))}
	for _, cells := range plan.Cells {
		h.names = append(h.names, cells[0].Variant.Name)
	}
	return h
}

// note stops the variant if err says that none of its calls can succeed.
func (h *halts) note(variant int, err error) {
	if e, ok := errors.AsType[*model.Error](err); !ok || !e.Fatal {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.causes[variant] == nil {
		h.causes[variant] = err
		h.n++
	}
}

func (h *halts) stopped(variant int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.causes[variant] != nil
}

func (h *halts) all() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n == len(h.causes)
}

// errors tells of each stopped variant, in the plan's order.
func (h *halts) errors() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for v, cause := range h.causes {
		if cause != nil {
			errs = append(errs, &VariantError{Variant: h.names[v], Err: cause})
		}
	}
	return errs
}
