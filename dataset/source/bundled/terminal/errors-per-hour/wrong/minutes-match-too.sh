for hour in $(seq -w 0 23); do
	echo "$hour $(grep ' ERROR ' events.log | grep -c "$hour:")"
done >hours.txt
