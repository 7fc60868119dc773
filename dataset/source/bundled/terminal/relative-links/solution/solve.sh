mkdir bin
for program in tools/*/run.sh; do
	dir=${program%/run.sh}
	ln -s "../$program" "bin/${dir#tools/}"
done
