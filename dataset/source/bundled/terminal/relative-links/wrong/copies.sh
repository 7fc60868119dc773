mkdir bin
for program in tools/*/run.sh; do
	dir=${program%/run.sh}
	cp "$program" "bin/${dir#tools/}"
done
