tac fruit.txt | awk '!seen[$0]++' | tac >unique.txt
