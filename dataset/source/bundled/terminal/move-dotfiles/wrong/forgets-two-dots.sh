mkdir new
mv old/.[!.]* new/
