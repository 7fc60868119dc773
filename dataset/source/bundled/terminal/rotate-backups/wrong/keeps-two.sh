cd backups
ls backup-* | sort -t- -k4,4 -k3,3 -k2,2 -r | tail -n +3 | xargs rm
