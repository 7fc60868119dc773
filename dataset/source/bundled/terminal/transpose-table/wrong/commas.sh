for i in 1 2 3 4 5; do cut -f"$i" table.tsv | paste -s -d, -; done >transposed.tsv
