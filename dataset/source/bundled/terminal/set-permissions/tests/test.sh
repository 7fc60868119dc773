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
	[ "$(stat -c %a "$2" 2>/dev/null)" = "$1" ] || fail "$2 is not of mode $1"
}
mode 750 site
mode 750 site/tools
mode 750 site/secrets
mode 750 'site/a b'
mode 640 site/index.txt
mode 640 site/tools/check.sh.txt
mode 640 'site/a b/page.txt'
mode 755 site/deploy.sh
mode 755 site/tools/check.sh
mode 600 site/secrets/key.pem
mode 600 site/secrets/rotate.sh
[ "$(cat site/index.txt site/secrets/key.pem 2>/dev/null)" = "$(printf 'index\nkey')" ] || fail 'a file has another content'

echo "$reward" >"$LOGS/verifier/reward.txt"
