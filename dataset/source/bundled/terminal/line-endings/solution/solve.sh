cr=$(printf '\r')
find docs -type f -name '*.txt' | while IFS= read -r file; do
	sed "s/$cr\$//" "$file" >"$file.new"
	mv "$file.new" "$file"
done
