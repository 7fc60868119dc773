sed -e 's/^page.txt: .*/page.txt: head.txt body.out foot.txt/' -e 's/rm /rm -f /' Makefile >Makefile.new
mv Makefile.new Makefile
make
