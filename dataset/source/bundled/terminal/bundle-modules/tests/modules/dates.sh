# needs: text
[ -n "$text" ] || exit 1
dates=$text-dates
