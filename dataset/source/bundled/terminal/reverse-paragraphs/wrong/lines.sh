tac procession.txt >reversed.txt
