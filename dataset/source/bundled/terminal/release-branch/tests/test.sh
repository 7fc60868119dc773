#!/bin/sh
# Judges the state of the working directory; see instruction.md.
TESTS=${TESTS:-/tests}
LOGS=${LOGS:-/logs}
reward=1
fail() {
	echo "$1"
	reward=0
}

git() { command git -C project -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor= "$@" 2>/dev/null; }
[ "$(git log --format=%s main)" = "$(printf 'Add guide\nAdd program')" ] || fail 'main has other commits'
[ "$(git ls-tree -r --name-only main~1)" = program.txt ] || fail 'the first commit holds something else'
[ "$(git ls-tree -r --name-only main)" = "$(printf 'guide.txt\nprogram.txt')" ] || fail 'the second commit holds something else'
[ "$(git cat-file -p main:program.txt)$(git cat-file -p main:guide.txt)" = programguide ] || fail 'a file in main has another content'
[ "$(git rev-parse 'v1.0^{commit}')" = "$(git rev-parse main~1)" ] || fail 'v1.0 does not point to the first commit'
[ "$(git rev-parse refs/heads/release)" = "$(git rev-parse main~1)" ] || fail 'release does not point to the first commit'
[ "$(git symbolic-ref HEAD)" = refs/heads/main ] || fail 'main is not checked out'
[ "$(cat project/program.txt project/guide.txt project/scratch.tmp 2>/dev/null)" = "$(printf 'program\nguide\nscratch')" ] || fail 'a file was changed'

echo "$reward" >"$LOGS/verifier/reward.txt"
