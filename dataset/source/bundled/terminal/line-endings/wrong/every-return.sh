find docs -type f -name '*.txt' | while IFS= read -r file; do
	tr -d '\r' <"$file" >"$file.new"
	mv "$file.new" "$file"
done
