python3 - <<'END'
import csv, json

with open("people.json", encoding="utf-8") as f:
    people = json.load(f)
with open("people.csv", "w", encoding="utf-8", newline="") as f:
    out = csv.writer(f, lineterminator="\n")
    out.writerow(["id", "name", "city", "zip", "tags"])
    for p in sorted(people, key=lambda p: p["id"]):
        address = p.get("address") or {}
        out.writerow([p["id"], p["name"], address.get("city") or "", address.get("zip") or "", ";".join(p["tags"])])
END
