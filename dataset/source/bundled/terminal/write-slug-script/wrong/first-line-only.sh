cat >slug.sh <<'END'
#!/bin/sh
read -r title
printf '%s\n' "$title" | tr 'A-Z' 'a-z' | sed -e 's/[^a-z0-9][^a-z0-9]*/-/g' -e 's/^-//' -e 's/-$//'
END
chmod +x slug.sh
