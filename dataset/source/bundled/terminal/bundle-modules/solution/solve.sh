cd modules
for file in *.sh; do
	name=${file%.sh}
	echo "$name $name"
	for need in $(head -n 1 "$file" | cut -d: -f2); do echo "$need $name"; done
done | tsort >../order
cd ..
{
	echo '#!/bin/sh'
	while read -r name; do cat "modules/$name.sh"; done <order
} >bundle.sh
rm order
chmod +x bundle.sh
