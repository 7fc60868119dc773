#!/bin/sh
# Judges the state of the working directory; see instruction.md.
TESTS=${TESTS:-/tests}
LOGS=${LOGS:-/logs}
reward=1
fail() {
	echo "$1"
	reward=0
}

folders() { (cd "$1" 2>/dev/null && find . -type d | LC_ALL=C sort); }
[ -n "$(folders skeleton)" ] && [ "$(folders skeleton)" = "$(cat "$TESTS/expected.txt")" ] || fail 'the folders of skeleton are others'
[ -z "$(find skeleton ! -type d 2>/dev/null)" ] || fail 'skeleton holds files'
[ "$(find project -type f | wc -l)" -eq 6 ] || fail 'project was changed'

echo "$reward" >"$LOGS/verifier/reward.txt"
