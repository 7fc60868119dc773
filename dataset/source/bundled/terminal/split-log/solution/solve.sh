mkdir -p levels
while read -r day time level message; do
	echo "$day $time $level $message" >>"levels/$level.log"
done <service.log
