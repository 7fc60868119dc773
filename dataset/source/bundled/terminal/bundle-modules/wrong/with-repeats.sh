{
	echo '#!/bin/sh'
	for name in base text base math table text dates report math main; do cat "modules/$name.sh"; done
} >bundle.sh
chmod +x bundle.sh
