for hour in $(seq -w 0 23); do
	echo "$hour $(grep -c "T$hour:..:.. ERROR " events.log)"
done >hours.txt
