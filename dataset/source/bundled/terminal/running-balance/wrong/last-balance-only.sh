awk '{ b += $2; line = line $1 " " $2 "\n" } END { printf "%s%.2f\n", line, b }' ledger.txt >balance.txt
