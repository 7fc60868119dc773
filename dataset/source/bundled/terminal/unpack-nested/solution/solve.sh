mkdir work flat
base64 -d bundle.b64 | gzip -dc | tar -xf - -C work
mv work/regions/* work/
rmdir work/regions
while archive=$(find work -name '*.tar' -o -name '*.tar.gz' | head -n 1) && [ -n "$archive" ]; do
	case $archive in
	*.gz) gzip -dc "$archive" | tar -xf - -C work ;;
	*) tar -xf "$archive" -C work ;;
	esac
	rm "$archive"
done
cd work
find . -type f | while IFS= read -r file; do
	mv "$file" "../flat/$(printf %s "${file#./}" | tr / -)"
done
cd ..
rm -r work
