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
	[ "$(cat "photos/$1" 2>/dev/null)" = "$2" ] || fail "photos/$1 is missing or differs"
}
expect beach.jpg beach
expect 'old town.jpg' 'old town'
expect 'trip/day 1/arrival.jpg' arrival
expect 'trip/day 1/notes.txt' 'on arrival'
expect trip/mountain.jpg mountain
expect trip/jpeg-howto.txt 'how to'
expect archive.jpeg.bak backup
expect .hidden.jpg hidden
[ "$(find photos ! -type d | wc -l)" -eq 8 ] || fail 'there are more files than before, or fewer'

echo "$reward" >"$LOGS/verifier/reward.txt"
