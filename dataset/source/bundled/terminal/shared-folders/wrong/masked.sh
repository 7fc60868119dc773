umask 022
cd exchange
mkdir public dropbox private
chmod 1777 public
chmod 700 private
echo 'be kind' >public/README
