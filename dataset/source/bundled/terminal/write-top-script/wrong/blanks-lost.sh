cat >top.sh <<'END'
#!/bin/sh
export LC_ALL=C
sort "$2" | uniq -c | sort -k1,1nr -k2 | head -n "$1" | while read -r n line; do echo $n $line; done
END
chmod +x top.sh
