while read -r id name; do
	echo "$name $(grep -c "^$id " orders.txt)"
done <users.txt | LC_ALL=C sort >report.txt
