#!/bin/sh
# Judges the state of the working directory; see instruction.md.
TESTS=${TESTS:-/tests}
LOGS=${LOGS:-/logs}
reward=1
fail() {
	echo "$1"
	reward=0
}

mode() {
	[ "$(stat -c %a "exchange/$2" 2>/dev/null)" = "$1" ] || fail "exchange/$2 is not of mode $1"
}
for dir in public dropbox private; do
	[ -d "exchange/$dir" ] || fail "exchange/$dir is no folder"
done
mode 1777 public
mode 733 dropbox
mode 700 private
mode 644 public/README
[ "$(cat exchange/public/README 2>/dev/null)" = 'be kind' ] || fail 'the README differs'

echo "$reward" >"$LOGS/verifier/reward.txt"
