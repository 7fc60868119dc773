LC_ALL=C sort -u subscribers.txt >a.tmp
LC_ALL=C sort -u unsubscribed.txt >b.tmp
LC_ALL=C comm -23 a.tmp b.tmp >active.txt
rm a.tmp b.tmp
