awk '
	NR == FNR { at = index($0, "="); value["{{" substr($0, 1, at - 1) "}}"] = substr($0, at + 1); next }
	{
		for (key in value) {
			at = index($0, key)
			if (at) $0 = substr($0, 1, at - 1) value[key] substr($0, at + length(key))
		}
		print
	}
' values.txt letter.tmpl >letter.txt
