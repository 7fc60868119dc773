for i in 1 2 3 4; do cut -f"$i" table.tsv | paste -s -; done >transposed.tsv
