# needs: report math
[ -n "$report" ] && [ -n "$math" ] || exit 1
echo "$report"
