#!/bin/sh
# Judges the state of the working directory; see instruction.md.
TESTS=${TESTS:-/tests}
LOGS=${LOGS:-/logs}
reward=1
fail() {
	echo "$1"
	reward=0
}

git() { command git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor= "$@"; }
[ "$(cat culprit.txt 2>/dev/null)" = 'swap the limits' ] || fail 'culprit.txt is missing or names another commit'
[ "$(git -C repo log --format=%s main 2>/dev/null)" = "$(cat "$TESTS/subjects.txt")" ] || fail 'the history of main in repo is another'
[ "$(git -C repo symbolic-ref HEAD 2>/dev/null)" = refs/heads/main ] || fail 'repo is not on main'
[ "$(cat repo/limits.txt 2>/dev/null)" = "$(printf 'low 75\nhigh 60')" ] || fail 'main is not checked out'

echo "$reward" >"$LOGS/verifier/reward.txt"
