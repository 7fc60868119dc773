find data -type f -exec sha256sum {} + | LC_ALL=C sort >sums.tmp
last=
while read -r sum file; do
	[ "$sum" = "$last" ] && echo "$file"
	last=$sum
done <sums.tmp | LC_ALL=C sort >duplicates.txt
rm sums.tmp
