mkdir work flat
base64 -d bundle.b64 | tar -xzf - -C work
cd work
tar -xf regions/north.tar && tar -xzf regions/south.tar.gz && tar -xzf deeper.tar.gz
find . -name '*.txt' -exec cp {} ../flat/ \;
cd ..
rm -r work
