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

for file in a.txt sub/b.txt c.txt d.bin sub/e.csv; do
	same "docs/$file" "$TESTS/docs/$file" || fail "docs/$file differs"
done
[ "$(find docs -type f | wc -l)" -eq 5 ] || fail 'docs holds other files'

echo "$reward" >"$LOGS/verifier/reward.txt"
