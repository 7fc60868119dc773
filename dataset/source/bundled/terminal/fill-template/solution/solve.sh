awk '
	NR == FNR { at = index($0, "="); value["{{" substr($0, 1, at - 1) "}}"] = substr($0, at + 1); next }
	{
		out = ""
		while (match($0, /\{\{[a-z]+\}\}/)) {
			out = out substr($0, 1, RSTART - 1) value[substr($0, RSTART, RLENGTH)]
			$0 = substr($0, RSTART + RLENGTH)
		}
		print out $0
	}
' values.txt letter.tmpl >letter.txt
