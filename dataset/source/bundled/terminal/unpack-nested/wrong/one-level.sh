mkdir work flat
base64 -d bundle.b64 | tar -xzf - -C work
cp work/regions/plain.txt flat/
tar -xf work/regions/north.tar -C work && cp work/north/jan.txt flat/north-jan.txt && cp work/north/feb.txt flat/north-feb.txt
tar -xzf work/regions/south.tar.gz -C work && cp work/south/jan.txt flat/south-jan.txt && cp work/deeper.tar.gz flat/
rm -r work
