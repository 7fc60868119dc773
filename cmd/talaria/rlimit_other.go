//go:build !unix

package main

import "github.com/talaria-run/talaria/configs"

// checkDescriptors has nothing to check where there is no such limit.
func checkDescriptors(*configs.Run, endpoints) error { return nil }
