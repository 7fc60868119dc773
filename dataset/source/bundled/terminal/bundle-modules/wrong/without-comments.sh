{
	echo '#!/bin/sh'
	for name in base text math table dates report main; do tail -n +2 "modules/$name.sh"; done
} >bundle.sh
chmod +x bundle.sh
