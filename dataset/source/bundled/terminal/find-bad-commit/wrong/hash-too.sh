git init -q repo
cd repo
git symbolic-ref HEAD refs/heads/main
git fast-import --quiet <../history.fi
git reset -q --hard
git log --format='%h %s' --grep='swap the limits' >../culprit.txt
