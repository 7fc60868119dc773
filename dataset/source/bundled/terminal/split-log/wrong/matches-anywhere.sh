mkdir -p levels
for level in DEBUG ERROR INFO WARN; do
	grep "$level" service.log >"levels/$level.log"
done
