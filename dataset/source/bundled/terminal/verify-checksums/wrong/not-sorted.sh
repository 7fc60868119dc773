while read -r sum name; do
	if [ ! -e "download/$name" ]; then echo "$name" >>missing.txt
	elif [ "$(sha256sum <"download/$name" | cut -d' ' -f1)" != "$sum" ]; then echo "$name" >>corrupted.txt
	fi
done <download/SHA256SUMS
