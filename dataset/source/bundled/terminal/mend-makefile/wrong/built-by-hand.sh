cat head.txt >page.txt
tr a-z A-Z <body.txt >>page.txt
cat foot.txt >>page.txt
