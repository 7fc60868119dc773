cd exchange
mkdir public dropbox private
chmod 1777 public
chmod 733 dropbox
chmod 700 private
echo 'be kind' >public/README
chmod 644 public/README
