# needs: text math
[ -n "$text" ] && [ -n "$math" ] || exit 1
table=$text+$math
