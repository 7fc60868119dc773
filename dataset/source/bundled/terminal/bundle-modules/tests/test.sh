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

	[ -x bundle.sh ] || fail 'bundle.sh is not there or cannot be executed'
	[ "$(head -n 1 bundle.sh 2>/dev/null)" = '#!/bin/sh' ] || fail 'the first line is another'
	tail -n +2 bundle.sh 2>/dev/null | LC_ALL=C sort >"$TMPDIR/lines"
	LC_ALL=C sort "$TESTS"/modules/*.sh | cmp -s - "$TMPDIR/lines" || fail 'bundle.sh has other lines than the modules'
	[ "$(timeout 10 ./bundle.sh 2>/dev/null)" = 'base-text+base-math/base-text-dates' ] || fail 'bundle.sh prints something else'
	for name in base text math table dates report main; do
		cmp -s "modules/$name.sh" "$TESTS/modules/$name.sh" || fail "modules/$name.sh was changed"
		n=$(wc -l <"$TESTS/modules/$name.sh")
		first=$(tail -n 1 "$TESTS/modules/$name.sh")
		at=$(grep -nFx "$first" bundle.sh 2>/dev/null | cut -d: -f1)
		[ -n "$at" ] && head -n "$at" bundle.sh | tail -n "$n" | cmp -s - "$TESTS/modules/$name.sh" || fail "bundle.sh does not hold $name.sh whole"
	done

	echo "$reward" >"$LOGS/verifier/reward.txt"
}
verify
exit
