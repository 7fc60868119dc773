sed -e '/^;/d' -e 's/^port = 8080$/port = 8443/' app.ini >app.new && mv app.new app.ini
