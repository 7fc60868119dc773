cat >top.sh <<'END'
#!/bin/sh
export LC_ALL=C
awk '{ n[$0]++ } END { for (line in n) print n[line] " " line }' "$2" | sort -k1,1nr -k2 | head -n "$1"
END
