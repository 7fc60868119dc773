//go:build race

package store

// underRace tells long sweeps to be short: the detector sees every interleaving
// that it will see in a few rounds, and makes each ten times as slow.
const underRace = true
