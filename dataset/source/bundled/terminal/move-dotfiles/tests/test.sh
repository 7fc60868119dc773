#!/bin/sh
# Judges the state of the working directory; see instruction.md.
TESTS=${TESTS:-/tests}
LOGS=${LOGS:-/logs}
reward=1
fail() {
	echo "$1"
	reward=0
}

[ "$(ls -A new 2>/dev/null | LC_ALL=C sort)" = "$(printf '..odd\n.config\n.profile\n.x')" ] || fail 'new holds something else'
[ "$(ls -A old | LC_ALL=C sort)" = "$(printf 'dir\nvisible.txt')" ] || fail 'old holds something else'
[ "$(cat new/.profile new/.config/app/rc new/..odd new/.x old/visible.txt old/dir/.inner 2>/dev/null)" = "$(printf 'profile\nrc\nodd\nx\nvisible\ninner')" ] || fail 'a file has another content'

echo "$reward" >"$LOGS/verifier/reward.txt"
