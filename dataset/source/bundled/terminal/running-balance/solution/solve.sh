awk '{ balance += $2 * 100; b = sprintf("%.0f", balance); printf "%s %s %.2f\n", $1, $2, b / 100 }' ledger.txt >balance.txt
