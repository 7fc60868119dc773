#!/bin/sh
# Judges the state of the working directory; see instruction.md.
TESTS=${TESTS:-/tests}
LOGS=${LOGS:-/logs}
reward=1
fail() {
	echo "$1"
	reward=0
}
same() { [ -f "$1" ] && [ ! -L "$1" ] && [ "$(sha256sum <"$1")" = "$(sha256sum <"$2")" ]; }

same letter.txt "$TESTS/expected.txt" || fail 'letter.txt is missing or differs'

echo "$reward" >"$LOGS/verifier/reward.txt"
