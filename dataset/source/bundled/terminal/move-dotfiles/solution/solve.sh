mkdir new
for entry in old/.[!.]* old/..?*; do
	[ -e "$entry" ] && mv "$entry" new/
done
