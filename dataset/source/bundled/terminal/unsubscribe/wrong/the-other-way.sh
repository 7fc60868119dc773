tidy() { tr -d ' \t' <"$1" | tr 'A-Z' 'a-z' | LC_ALL=C sort -u; }
tidy subscribers.txt >a.tmp
tidy unsubscribed.txt >b.tmp
LC_ALL=C comm -13 a.tmp b.tmp >active.txt
rm a.tmp b.tmp
