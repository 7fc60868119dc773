awk '!seen[$0]++' fruit.txt >unique.txt
