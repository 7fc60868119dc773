awk 'BEGIN { RS = ""; FS = "\n" } { p[NR] = $0 } END { for (i = NR; i > 0; i--) { print p[i]; if (i > 1) print "" } }' procession.txt >reversed.txt
