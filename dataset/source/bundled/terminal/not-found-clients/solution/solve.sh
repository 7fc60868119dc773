awk '$9 == 404 { n[$1]++ } END { for (ip in n) print n[ip], ip }' access.log | LC_ALL=C sort -k1,1nr -k2,2 | head -n 3 >top.txt
