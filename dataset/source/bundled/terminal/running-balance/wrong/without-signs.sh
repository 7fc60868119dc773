awk '{ v = $2 < 0 ? -$2 : $2; b += v; printf "%s %s %.2f\n", $1, $2, b }' ledger.txt >balance.txt
