tr 'A-Z' 'a-z' <subscribers.txt | LC_ALL=C sort -u >a.tmp
tr 'A-Z' 'a-z' <unsubscribed.txt | LC_ALL=C sort -u >b.tmp
LC_ALL=C comm -23 a.tmp b.tmp >active.txt
rm a.tmp b.tmp
