python3 - <<'END'
import json
people = json.load(open("people.json", encoding="utf-8"))
with open("people.csv", "w", encoding="utf-8") as f:
    print("id,name,city,zip,tags", file=f)
    for p in sorted(people, key=lambda p: p["id"]):
        a = p["address"] or {}
        print(p["id"], p["name"], a.get("city") or "", a.get("zip") or "", ";".join(p["tags"]), sep=",", file=f)
END
