cat >slug.sh <<'END'
#!/bin/sh
tr 'A-Z' 'a-z' | sed -e 's/[^a-z0-9]/-/g' -e 's/^-*//' -e 's/-*$//'
END
chmod +x slug.sh
