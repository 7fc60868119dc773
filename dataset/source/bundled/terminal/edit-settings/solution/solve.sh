section=
while IFS= read -r line; do
	case $line in '['*']') section=$line ;; esac
	[ "$section" = '[server]' ] && [ "$line" = 'port = 8080' ] && line='port = 8443'
	printf '%s\n' "$line"
done <app.ini >app.new
mv app.new app.ini
