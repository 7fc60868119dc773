#!/bin/sh
# Judges the state of the working directory; see instruction.md.
TESTS=${TESTS:-/tests}
LOGS=${LOGS:-/logs}
reward=1
fail() {
	echo "$1"
	reward=0
}

[ "$(ls -A bin 2>/dev/null)" = "$(printf 'backup\ndeploy\nlint all')" ] || fail 'bin holds something else'
cp -R . "$TMPDIR/moved" && cd "$TMPDIR/moved" || fail 'the directory cannot be copied'
for name in backup deploy 'lint all'; do
	[ -L "bin/$name" ] || fail "bin/$name is no link"
	case $(readlink "bin/$name") in /*) fail "bin/$name is absolute" ;; esac
	[ "$(readlink -f "bin/$name")" = "$(readlink -f "tools/$name/run.sh")" ] || fail "bin/$name leads elsewhere"
done

echo "$reward" >"$LOGS/verifier/reward.txt"
