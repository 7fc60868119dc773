for dir in project/* project/*/* project/*/*/* project/*/*/*/*; do
	[ -d "$dir" ] && mkdir -p "skeleton/${dir#project/}"
done
