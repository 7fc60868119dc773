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

same duplicates.txt "$TESTS/expected.txt" || fail 'duplicates.txt is missing or differs'
[ "$(find data -type f -exec sha256sum {} + | LC_ALL=C sort)" = "$(cat "$TESTS/sums.txt")" ] || fail 'data was changed'

echo "$reward" >"$LOGS/verifier/reward.txt"
