cd photos
for file in *.jpeg .*.jpeg; do
	mv "$file" "${file%.jpeg}.jpg"
done
