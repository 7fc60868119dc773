grep ' ERROR ' events.log | cut -c12-13 | sort | uniq -c | while read -r count hour; do
	echo "$hour $count"
done >hours.txt
