grep 404 access.log | awk '{ n[$1]++ } END { for (ip in n) print n[ip], ip }' | LC_ALL=C sort -k1,1nr -k2,2 | head -n 3 >top.txt
