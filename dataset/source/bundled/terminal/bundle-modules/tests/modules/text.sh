# needs: base
[ -n "$trail" ] || exit 1
text=$trail-text
