#!/bin/sh
# Judges the state of the working directory; see instruction.md.
# It is a function so that no program which it runs can change it on the way.
verify() {
	TESTS=${TESTS:-/tests}
	LOGS=${LOGS:-/logs}
	reward=1
	fail() {
		echo "$1"
		reward=0
	}

	got=$(timeout 20 python3 -I -S -B "$TESTS/cases.py" intervals.py 2>&1)
	[ "$got" = "every case holds" ] || fail "$got"

	echo "$reward" >"$LOGS/verifier/reward.txt"
}
verify
exit
