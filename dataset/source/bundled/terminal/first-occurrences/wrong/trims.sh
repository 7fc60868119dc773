while read -r name; do echo "$name"; done <fruit.txt | awk '!seen[$0]++' >unique.txt
