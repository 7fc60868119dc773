columns=$(head -n 1 table.tsv | tr '\t' '\n' | wc -l)
for i in $(seq "$columns"); do
	cut -f"$i" table.tsv | paste -s -
done >transposed.tsv
