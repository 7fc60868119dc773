cd backups
ls backup-* | sort -t- -k4,4 -k3,3 -k2,2 | tail -n +4 | xargs rm
