{ echo '#!/bin/sh'; cat modules/*.sh; } >bundle.sh
chmod +x bundle.sh
