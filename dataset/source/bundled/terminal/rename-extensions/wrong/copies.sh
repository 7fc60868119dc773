find photos -type f -name '*.jpeg' | while IFS= read -r file; do
	cp "$file" "${file%.jpeg}.jpg"
done
