cp -R app app-1.2
tar -czf release.tar.gz app-1.2
rm -r app-1.2
