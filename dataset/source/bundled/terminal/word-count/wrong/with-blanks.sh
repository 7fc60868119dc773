tr -cs 'A-Za-z' '\n' <story.txt | tr 'A-Z' 'a-z' | LC_ALL=C sort | uniq -c | LC_ALL=C sort -k1,1nr -k2,2 | head -n 8 >words.txt
