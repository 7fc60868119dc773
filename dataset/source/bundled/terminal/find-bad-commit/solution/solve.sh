git init -q repo
cd repo
git symbolic-ref HEAD refs/heads/main
git fast-import --quiet <../history.fi
git reset -q --hard
for commit in $(git rev-list --reverse main); do
	git show "$commit:limits.txt" >../limits.tmp
	low=$(sed -n 's/^low //p' ../limits.tmp)
	high=$(sed -n 's/^high //p' ../limits.tmp)
	if [ "$low" -gt "$high" ]; then
		git log -1 --format=%s "$commit" >../culprit.txt
		break
	fi
done
rm ../limits.tmp
