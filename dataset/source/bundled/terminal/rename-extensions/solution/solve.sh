find photos -type f -name '*.jpeg' | while IFS= read -r file; do
	mv "$file" "${file%.jpeg}.jpg"
done
