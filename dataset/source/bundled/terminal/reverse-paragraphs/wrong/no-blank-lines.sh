awk 'BEGIN { RS = "" } { p[NR] = $0 } END { for (i = NR; i > 0; i--) print p[i] }' procession.txt >reversed.txt
