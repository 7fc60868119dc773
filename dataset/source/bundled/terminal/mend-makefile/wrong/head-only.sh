sed -e 's/^page.txt: /.PHONY: clean\npage.txt: head.txt /' -e 's/rm /rm -f /' Makefile >Makefile.new
mv Makefile.new Makefile
make
