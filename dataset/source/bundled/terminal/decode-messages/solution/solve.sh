for number in $(ls messages | cut -d. -f1 | sort -n); do
	base64 -d "messages/$number.b64"
done >letter.txt
