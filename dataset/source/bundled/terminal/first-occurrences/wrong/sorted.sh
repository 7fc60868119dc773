LC_ALL=C sort -u fruit.txt >unique.txt
