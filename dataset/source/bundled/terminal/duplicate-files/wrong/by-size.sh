find data -type f | while IFS= read -r file; do
	size=$(wc -c <"$file")
	find data -type f -size "${size}c" ! -path "$file" | grep -q . && echo "$file"
done | LC_ALL=C sort >duplicates.txt
