cr=$(printf '\r')
for file in docs/*.txt; do
	sed "s/$cr\$//" "$file" >"$file.new"
	mv "$file.new" "$file"
done
