cd app
tar -czf ../release.tar.gz -T MANIFEST
