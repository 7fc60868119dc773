cat >Makefile <<'END'
# Builds page.txt of a head, a body and a foot.
page.txt: head.txt body.out foot.txt
	cat head.txt body.out foot.txt > page.txt

body.out: body.txt
	tr a-z A-Z < body.txt > body.out

.PHONY: clean
clean:
	rm -f page.txt body.out
END
make
