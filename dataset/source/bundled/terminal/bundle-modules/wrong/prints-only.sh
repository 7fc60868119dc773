printf '#!/bin/sh\necho base-text+base-math/base-text-dates\n' >bundle.sh
chmod +x bundle.sh
