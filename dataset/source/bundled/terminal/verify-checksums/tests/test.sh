#!/bin/sh
# Judges the state of the working directory; see instruction.md.
TESTS=${TESTS:-/tests}
LOGS=${LOGS:-/logs}
reward=1
fail() {
	echo "$1"
	reward=0
}

[ -f corrupted.txt ] && [ "$(cat corrupted.txt)" = "$(printf 'part-2.bin\npart-5.bin')" ] || fail 'corrupted.txt is missing or differs'
[ -f missing.txt ] && [ "$(cat missing.txt)" = "$(printf 'part-4.bin\npart-6.bin')" ] || fail 'missing.txt is missing or differs'

echo "$reward" >"$LOGS/verifier/reward.txt"
