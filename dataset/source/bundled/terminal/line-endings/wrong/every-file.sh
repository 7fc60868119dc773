cr=$(printf '\r')
find docs -type f | while IFS= read -r file; do
	sed "s/$cr\$//" "$file" >"$file.new"
	mv "$file.new" "$file"
done
