awk -F, 'NR > 1 && $4 != "cancelled" { t[$2] += $3 } END { for (r in t) printf "%s,%.2f\n", r, t[r] }' sales.csv | LC_ALL=C sort >totals.csv
