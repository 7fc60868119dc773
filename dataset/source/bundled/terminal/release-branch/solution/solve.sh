cd project
git init -q
git symbolic-ref HEAD refs/heads/main
git config user.name Agent
git config user.email agent@example.org
git add program.txt
git commit -q -m 'Add program'
git tag v1.0
git branch release
git add guide.txt
git commit -q -m 'Add guide'
