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

	[ "$(cat page.txt 2>/dev/null)" = "$(printf '== head ==\nTHE BODY\n== foot ==')" ] || fail 'page.txt is missing or differs'
	cp -R . "$TMPDIR/copy" && cd "$TMPDIR/copy" || fail 'the directory cannot be copied'
	build() { timeout 20 make "$@" >/dev/null 2>&1; }
	old() { touch -d "$1" head.txt body.txt foot.txt Makefile && touch -d "$2" body.out && touch -d "$3" page.txt; }
	old '2020-01-01' '2020-01-02' '2020-01-03'
	build -q page.txt || fail 'make builds although nothing has changed'
	for part in head foot; do
		old '2020-01-01' '2020-01-02' '2020-01-03'
		echo "new $part" >$part.txt
		build page.txt
		grep -q "new $part" page.txt 2>/dev/null || fail "the page does not follow $part.txt"
	done
	echo 'new body' >body.txt
	build
	grep -q 'NEW BODY' page.txt 2>/dev/null || fail 'the page does not follow body.txt'
	echo 'x' >clean
	build clean || fail 'make clean fails'
	[ ! -e page.txt ] && [ ! -e body.out ] || fail 'make clean leaves what was built'
	build clean || fail 'make clean fails when there is nothing to clean'
	build && [ "$(cat page.txt 2>/dev/null)" = "$(printf 'new head\nNEW BODY\nnew foot')" ] || fail 'the page cannot be built after make clean'

	echo "$reward" >"$LOGS/verifier/reward.txt"
}
verify
exit
