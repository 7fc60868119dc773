cat >slug.sh <<'END'
#!/bin/sh
tr 'A-Z' 'a-z' | sed -e 's/[^a-z][^a-z]*/-/g' -e 's/^-//' -e 's/-$//'
END
chmod +x slug.sh
