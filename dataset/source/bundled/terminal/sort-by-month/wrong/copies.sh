for file in inbox/2*; do
	name=${file#inbox/}
	dir=archive/$(echo "$name" | cut -c1-4)/$(echo "$name" | cut -c6-7)
	mkdir -p "$dir"
	cp "$file" "$dir/"
done
