sort users.txt >u.tmp
sort orders.txt | join u.tmp - | cut -d' ' -f2 | sort | uniq -c | while read -r n name; do echo "$name $n"; done >report.txt
rm u.tmp
