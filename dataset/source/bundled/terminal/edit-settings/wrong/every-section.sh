sed 's/8080/8443/' app.ini >app.new && mv app.new app.ini
