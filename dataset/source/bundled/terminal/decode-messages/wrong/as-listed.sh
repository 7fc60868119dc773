for file in messages/*; do base64 -d "$file"; done >letter.txt
