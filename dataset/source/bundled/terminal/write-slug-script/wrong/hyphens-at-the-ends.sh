cat >slug.sh <<'END'
#!/bin/sh
tr 'A-Z' 'a-z' | sed 's/[^a-z0-9][^a-z0-9]*/-/g'
END
chmod +x slug.sh
