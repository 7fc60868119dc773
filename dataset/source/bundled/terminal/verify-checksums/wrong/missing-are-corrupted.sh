(cd download && sha256sum -c SHA256SUMS 2>/dev/null) | grep FAILED | cut -d: -f1 | sort >corrupted.txt
printf 'part-4.bin\npart-6.bin\n' >missing.txt
