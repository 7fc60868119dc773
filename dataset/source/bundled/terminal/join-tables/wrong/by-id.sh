sort users.txt | while read -r id name; do
	echo "$name $(grep -c "^$id " orders.txt)"
done >report.txt
