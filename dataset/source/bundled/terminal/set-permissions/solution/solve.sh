find site -type f -exec chmod 640 {} +
find site -type f -name '*.sh' -exec chmod 755 {} +
find site/secrets -type f -exec chmod 600 {} +
find site -type d -exec chmod 750 {} +
