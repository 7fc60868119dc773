#!/bin/sh
# Judges the state of the working directory; see instruction.md.
TESTS=${TESTS:-/tests}
LOGS=${LOGS:-/logs}
reward=1
fail() {
	echo "$1"
	reward=0
}

[ "$(ls -A backups | LC_ALL=C sort)" = "$(printf 'README\nbackup-01-03-2025.txt\nbackup-03-02-2025.txt\nbackup-28-01-2025.txt')" ] || fail 'backups holds other files'
[ "$(cat backups/backup-01-03-2025.txt backups/backup-03-02-2025.txt backups/backup-28-01-2025.txt 2>/dev/null)" = "$(printf '01-03-2025\n03-02-2025\n28-01-2025')" ] || fail 'a backup has another content'

echo "$reward" >"$LOGS/verifier/reward.txt"
