mkdir bin
for dir in tools/*; do
	ln -s "../$dir/run.sh" "bin/${dir#tools/}"
done
