cd exchange
mkdir -m 777 public
mkdir -m 733 dropbox
mkdir -m 700 private
echo 'be kind' >public/README
chmod 777 public
