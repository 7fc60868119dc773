sed -e 's/    intervals.sort()/    intervals = sorted(intervals)/' -e 's/begin < merged/begin <= merged/' intervals.py >mended.py
mv mended.py intervals.py
