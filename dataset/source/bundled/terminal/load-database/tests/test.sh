#!/bin/sh
# Judges the state of the working directory; see instruction.md.
TESTS=${TESTS:-/tests}
LOGS=${LOGS:-/logs}
reward=1
fail() {
	echo "$1"
	reward=0
}

query() { sqlite3 -batch -init /dev/null library.db "$1" 2>/dev/null; }
[ -f library.db ] && [ "$(query "select id || '/' || title || '/' || year from books order by id;")" = "$(cat "$TESTS/rows.txt")" ] || fail 'the table holds other rows'
[ "$(query "select name || ' ' || lower(type) || ' ' || pk from pragma_table_info('books') order by name;")" = "$(printf 'id integer 1\ntitle text 0\nyear integer 0')" ] || fail 'the table has other columns'
[ "$(query "select count(*) from books where typeof(year) <> 'integer' or typeof(id) <> 'integer';")" = 0 ] || fail 'a number is stored as text'
[ "$(cat years.txt 2>/dev/null)" = "$(printf '1987|1\n1999|2\n2001|2')" ] || fail 'years.txt is missing or differs'

echo "$reward" >"$LOGS/verifier/reward.txt"
