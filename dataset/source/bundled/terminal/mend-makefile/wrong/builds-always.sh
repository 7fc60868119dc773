sed -e 's/^page.txt: body.out/.PHONY: page.txt clean\npage.txt: body.out/' -e 's/rm /rm -f /' Makefile >Makefile.new
mv Makefile.new Makefile
make
