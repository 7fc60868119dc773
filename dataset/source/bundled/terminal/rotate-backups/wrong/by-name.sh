cd backups
ls backup-* | sort -r | tail -n +4 | xargs rm
