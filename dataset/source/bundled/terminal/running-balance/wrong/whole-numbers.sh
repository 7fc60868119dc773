awk '{ b += $2; printf "%s %s %d\n", $1, $2, b }' ledger.txt >balance.txt
