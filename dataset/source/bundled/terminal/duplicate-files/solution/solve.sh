find data -type f -exec sha256sum {} + | LC_ALL=C sort >sums.tmp
cut -c1-64 sums.tmp | uniq -d | while read -r sum; do
	grep "^$sum" sums.tmp | cut -c67-
done | LC_ALL=C sort >duplicates.txt
rm sums.tmp
