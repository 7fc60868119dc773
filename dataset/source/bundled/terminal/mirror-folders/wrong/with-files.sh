cp -R project skeleton
