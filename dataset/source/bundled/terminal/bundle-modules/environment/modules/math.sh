# needs: base
[ -n "$trail" ] || exit 1
math=$trail-math
