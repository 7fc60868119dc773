find photos -type f -name '*.jpeg*' | while IFS= read -r file; do
	mv "$file" "$(printf '%s' "$file" | sed 's/\.jpeg/.jpg/')"
done
