for number in $(seq 11); do base64 -d "messages/$number.b64"; done | tr '\n' ' ' >letter.txt
