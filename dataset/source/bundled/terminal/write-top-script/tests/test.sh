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

	[ -x top.sh ] || fail 'top.sh is not there or cannot be executed'
	top=$PWD/top.sh
	printf 'b  x\na\nb  x\n lead\na\n lead\nc\n lead\n' >"$TMPDIR/in put.txt"
	got=$(cd "$TMPDIR" && timeout 10 "$top" 3 'in put.txt' 2>/dev/null)
	[ "$got" = "$(printf '3  lead\n2 a\n2 b  x')" ] || fail 'three of a file with blanks: wrong'
	got=$(timeout 10 "$top" 1 "$TMPDIR/in put.txt" 2>/dev/null)
	[ "$got" = '3  lead' ] || fail 'one of a file with blanks: wrong'
	seq 100 >"$TMPDIR/numbers"
	[ "$(timeout 10 "$top" 50 "$TMPDIR/numbers" 2>/dev/null | wc -l)" -eq 50 ] || fail 'fifty of a hundred numbers: wrong'
	[ "$(timeout 10 "$top" 2 "$TMPDIR/numbers" 2>/dev/null)" = "$(printf '1 1\n1 10')" ] || fail 'two of a hundred numbers: wrong'

	echo "$reward" >"$LOGS/verifier/reward.txt"
}
verify
exit
