package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
)

// startProfile writes a CPU profile of the command to path, if there is one.
func (s *stdio) startProfile(path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("making the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(fmt.Errorf("starting the profile: %w", err), f.Close())
	}
	s.profile = f
	return nil
}

func (s *stdio) stopProfile() error {
	if s.profile == nil {
		return nil
	}
	pprof.StopCPUProfile()
	f := s.profile
	s.profile = nil
	return f.Close()
}
