uniq fruit.txt >unique.txt
