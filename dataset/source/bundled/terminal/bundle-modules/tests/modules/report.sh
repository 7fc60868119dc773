# needs: table dates
[ -n "$table" ] && [ -n "$dates" ] || exit 1
report="$table/$dates"
