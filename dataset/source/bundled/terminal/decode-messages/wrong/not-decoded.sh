for number in $(seq 11); do cat "messages/$number.b64"; done >letter.txt
