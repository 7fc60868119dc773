for file in inbox/2*; do
	name=${file#inbox/}
	month=$(echo "$name" | cut -c6-7)
	dir=archive/$(echo "$name" | cut -c1-4)/${month#0}
	mkdir -p "$dir"
	mv "$file" "$dir/"
done
