find project -type d | while IFS= read -r dir; do
	mkdir -p "skeleton/$dir"
done
