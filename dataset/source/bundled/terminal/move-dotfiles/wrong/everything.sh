mkdir new
mv old/.[!.]* old/..?* old/* new/
