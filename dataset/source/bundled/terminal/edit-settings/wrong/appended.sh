printf '\n[server]\nport = 8443\n' >>app.ini
