for file in inbox/[0-9][0-9][0-9][0-9]-[0-9][0-9]-*; do
	name=${file#inbox/}
	year=${name%%-*}
	rest=${name#*-}
	month=${rest%%-*}
	mkdir -p "archive/$year/$month"
	mv "$file" "archive/$year/$month/"
done
