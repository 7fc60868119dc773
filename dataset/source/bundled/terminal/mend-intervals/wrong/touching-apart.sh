sed -e 's/    intervals.sort()/    intervals = sorted(intervals)/' \
	-e 's/(merged\[-1\]\[0\], end)/(merged[-1][0], max(end, merged[-1][1]))/' intervals.py >mended.py
mv mended.py intervals.py
