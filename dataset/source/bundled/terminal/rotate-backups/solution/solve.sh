cd backups
ls | grep '^backup-' | sort -t- -k4,4 -k3,3 -k2,2 -r >../order
cd ..
# The year still has its ending, which is the same for all.
tail -n +4 order | while read -r name; do rm "backups/$name"; done
rm order
