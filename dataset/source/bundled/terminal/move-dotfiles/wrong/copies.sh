mkdir new
cp -R old/.[!.]* old/..?* new/
