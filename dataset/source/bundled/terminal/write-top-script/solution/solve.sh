cat >top.sh <<'END'
#!/bin/sh
LC_ALL=C
export LC_ALL
awk '{ n[$0]++ } END { for (line in n) print n[line] " " line }' "$2" | sort -k1,1nr -k2 | head -n "$1"
END
# The second key begins with the blank that stands between count and line.
chmod +x top.sh
