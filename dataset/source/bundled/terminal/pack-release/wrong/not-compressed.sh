mkdir app-1.2
while IFS= read -r file; do
	mkdir -p "$(dirname "app-1.2/$file")"
	cp "app/$file" "app-1.2/$file"
done <app/MANIFEST
tar -cf release.tar app-1.2
mv release.tar release.tar.gz.part
rm -r app-1.2
