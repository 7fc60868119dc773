python3 - <<'END'
import csv, json
people = json.load(open("people.json", encoding="utf-8"))
with open("people.csv", "w", encoding="utf-8", newline="") as f:
    out = csv.writer(f, lineterminator="\n")
    out.writerow(["id", "name", "city", "zip", "tags"])
    for p in people:
        a = p["address"] or {}
        out.writerow([p["id"], p["name"], a.get("city") or "", a.get("zip") or "", ";".join(p["tags"])])
END
