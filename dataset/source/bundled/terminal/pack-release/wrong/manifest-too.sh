mkdir app-1.2
cp app/MANIFEST app-1.2/
while IFS= read -r file; do
	mkdir -p "$(dirname "app-1.2/$file")"
	cp "app/$file" "app-1.2/$file"
done <app/MANIFEST
tar -czf release.tar.gz app-1.2
rm -r app-1.2
