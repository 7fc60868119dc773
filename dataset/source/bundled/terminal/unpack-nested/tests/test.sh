#!/bin/sh
# Judges the state of the working directory; see instruction.md.
TESTS=${TESTS:-/tests}
LOGS=${LOGS:-/logs}
reward=1
fail() {
	echo "$1"
	reward=0
}

[ "$(ls -A flat 2>/dev/null)" = "$(printf 'north-feb.txt\nnorth-jan.txt\nplain.txt\nsouth-feb.txt\nsouth-jan.txt')" ] || fail 'flat holds other files'
[ "$(cd flat 2>/dev/null && cat north-feb.txt north-jan.txt plain.txt south-feb.txt south-jan.txt 2>/dev/null)" = "$(printf 'feb n\njan n\nplain\nfeb s\njan s')" ] || fail 'a file has another content'

echo "$reward" >"$LOGS/verifier/reward.txt"
