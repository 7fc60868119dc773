awk -F, 'NR > 1 && $4 != "cancelled" {
	split($3, parts, ".")
	cents[$2] += parts[1] * 100 + parts[2]
} END {
	for (region in cents) printf "%s,%d.%02d\n", region, int(cents[region] / 100), cents[region] % 100
}' sales.csv | LC_ALL=C sort >totals.tmp
{ echo region,total; cat totals.tmp; } >totals.csv
rm totals.tmp
