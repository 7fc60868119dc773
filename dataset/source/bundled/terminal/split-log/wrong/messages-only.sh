mkdir -p levels
while read -r day time level message; do
	echo "$message" >>"levels/$level.log"
done <service.log
