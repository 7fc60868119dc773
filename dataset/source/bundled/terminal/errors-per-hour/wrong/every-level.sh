for hour in $(seq -w 0 23); do
	echo "$hour $(grep -c "T$hour:" events.log)"
done >hours.txt
