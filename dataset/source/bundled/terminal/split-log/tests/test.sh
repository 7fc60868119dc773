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

for level in DEBUG ERROR INFO WARN; do
	same "levels/$level.log" "$TESTS/$level.log" || fail "levels/$level.log is missing or differs"
done
[ "$(ls -A levels 2>/dev/null | wc -l)" -eq 4 ] || fail 'levels holds other files'
same service.log "$TESTS/service.log" || fail 'service.log was changed'

echo "$reward" >"$LOGS/verifier/reward.txt"
