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

	[ -x slug.sh ] || fail 'slug.sh is not there or cannot be executed'
	got=$(printf 'Hello,  World!\n  --Version 2.0 (beta)--\n!!!\nsimple\nA_B\n' | timeout 10 ./slug.sh 2>/dev/null; echo end)
	[ "$got" = "$(printf 'hello-world\nversion-2-0-beta\n\nsimple\na-b\nend')" ] || fail 'the slugs are wrong'
	[ "$(printf '%s\n' 'back\\slash & $HOME *' | timeout 10 ./slug.sh 2>/dev/null)" = back-slash-home ] || fail 'a title with special characters is wrong'
	[ -z "$(timeout 10 ./slug.sh </dev/null 2>/dev/null)" ] || fail 'it prints something for nothing'

	echo "$reward" >"$LOGS/verifier/reward.txt"
}
verify
exit
