#!/bin/sh
# Judges the state of the working directory; see instruction.md.
TESTS=${TESTS:-/tests}
LOGS=${LOGS:-/logs}
reward=1
fail() {
	echo "$1"
	reward=0
}
same() { [ -f "$1" ] && [ ! -L "$1" ] && [ "$(sha256sum <"$1")" = "$(sha256sum <"$2")" ]; }

tar -tzf release.tar.gz 2>/dev/null | grep -v '/$' | LC_ALL=C sort >"$TMPDIR/names"
same "$TMPDIR/names" "$TESTS/names.txt" || fail 'the archive is missing or holds other files'
mkdir "$TMPDIR/out"
tar -xzf release.tar.gz -C "$TMPDIR/out" 2>/dev/null
cd "$TMPDIR/out" || exit
[ "$(cat app-1.2/main.txt app-1.2/lib/util.txt app-1.2/docs/guide.txt 'app-1.2/a b.txt' 2>/dev/null)" = "$(printf 'main\nutil\nguide\nblank')" ] || fail 'a file in the archive has another content'
cd "$OLDPWD" || exit
[ "$(cat app/MANIFEST | wc -l)" -eq 4 ] && [ "$(find app -type f | wc -l)" -eq 8 ] || fail 'app was changed'

echo "$reward" >"$LOGS/verifier/reward.txt"
