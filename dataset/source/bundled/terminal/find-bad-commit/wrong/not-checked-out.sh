git init -q --bare repo
cd repo
git symbolic-ref HEAD refs/heads/main
git fast-import --quiet <../history.fi
echo 'swap the limits' >../culprit.txt
