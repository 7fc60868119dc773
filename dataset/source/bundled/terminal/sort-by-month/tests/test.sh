#!/bin/sh
# Judges the state of the working directory; see instruction.md.
TESTS=${TESTS:-/tests}
LOGS=${LOGS:-/logs}
reward=1
fail() {
	echo "$1"
	reward=0
}

expect() {
	[ "$(cat "$1" 2>/dev/null)" = "$2" ] || fail "$1 is missing or differs"
}
expect 'archive/2024/11/2024-11-03 shopping.txt' milk
expect 'archive/2024/11/2024-11-28 ideas.txt' kite
expect 'archive/2025/01/2025-01-02 plans.txt' travel
expect 'archive/2025/01/2025-01-30 letter.txt' 'dear all'
expect 'archive/2025/12/2025-12-24 list.txt' candles
[ "$(ls -A inbox)" = undated.txt ] || fail 'inbox holds something else than undated.txt'
expect inbox/undated.txt '?'
[ "$(ls -A archive)" = "$(printf '2024\n2025')" ] || fail 'archive holds other years'

echo "$reward" >"$LOGS/verifier/reward.txt"
