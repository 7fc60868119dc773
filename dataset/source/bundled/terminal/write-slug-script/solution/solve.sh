cat >slug.sh <<'END'
#!/bin/sh
LC_ALL=C tr 'A-Z' 'a-z' | LC_ALL=C sed -e 's/[^a-z0-9][^a-z0-9]*/-/g' -e 's/^-//' -e 's/-$//'
END
chmod +x slug.sh
