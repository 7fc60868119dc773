cp letter.tmpl letter.txt
while IFS='=' read -r key value; do
	sed "s|{{$key}}|$value|g" letter.txt >letter.new && mv letter.new letter.txt
done <values.txt
rm -f letter.new
