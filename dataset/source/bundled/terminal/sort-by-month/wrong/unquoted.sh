for file in $(ls inbox); do
	dir=archive/$(echo $file | cut -c1-4)/$(echo $file | cut -c6-7)
	case $file in 2*) mkdir -p $dir && mv inbox/$file $dir/ ;; esac
done
