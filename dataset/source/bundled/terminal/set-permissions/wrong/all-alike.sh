chmod -R 750 site
