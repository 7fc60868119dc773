"""Reads what go test -json prints.

testlog.py show LOG             from stdin: print failures, skips, closing lines; keep the results in LOG
testlog.py closing LOG          print the closing line of each package
testlog.py require LIST LOG...  fail unless every test named in LIST passed in a LOG and was skipped in
                                none; a test that needs a path which is not there is not required
"""

import collections
import json
import os
import sys


def show(log):
    outputs = collections.defaultdict(list)
    with open(log, "w", encoding="utf-8") as kept:
        for line in sys.stdin:
            try:
                event = json.loads(line)
            except ValueError:
                print(line, end="", flush=True)
                continue
            action, package, test = event["Action"], event.get("Package", ""), event.get("Test", "")
            if action == "build-output":
                print(event["Output"], end="", flush=True)
            elif action == "output" and test:
                outputs[package, test].append(event["Output"])
            elif action == "output":
                package_output(event["Output"], package, kept)
            elif action in ("pass", "fail", "skip"):
                if test:
                    kept.write(json.dumps([package, test, action]) + "\n")
                finish(outputs, package, test, action)


def package_output(text, package, kept):
    if text.startswith(("ok ", "FAIL\t", "? ")):
        kept.write(json.dumps([package, "", text]) + "\n")
    if text != "PASS\n":
        print(text, end="", flush=True)


def finish(outputs, package, test, action):
    """Print what a test said unless it passed; a package that fails says what its unfinished tests said."""
    keys = [(package, test)] if test else [key for key in outputs if key[0] == package]
    for key in keys:
        said = "".join(line for line in outputs.pop(key, []) if not line.startswith("=== "))
        if action != "pass":
            print(said, end="", flush=True)


def results(log):
    with open(log, encoding="utf-8") as kept:
        return [json.loads(line) for line in kept]


def closing(log):
    for _, test, text in results(log):
        if not test:
            print(text, end="")


def require(listing, logs):
    seen = collections.defaultdict(set)
    for log in logs:
        for package, test, action in results(log):
            if test:
                seen[package.partition("/talaria/")[2], test].add(action)
    wrong, passed = [], 0
    for line in open(listing, encoding="utf-8"):
        test, _, needs = line.split("#")[0].strip().partition(" needs ")
        if not test:
            continue
        if needs and not os.path.exists(needs):
            print(f"not required: {test}: {needs} is not there")
            continue
        actions = seen[tuple(test.split())]
        if actions == {"pass"}:
            passed += 1
        else:
            wrong.append(f"{test}: {', '.join(sorted(actions)) or 'did not run'}")
    if wrong:
        sys.exit("tests that must pass and must not be skipped:\n  " + "\n  ".join(wrong))
    print(f"{passed} required tests passed")


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "show":
        show(*arguments)
    elif command == "closing":
        closing(*arguments)
    elif command == "require":
        require(arguments[0], arguments[1:])
    else:
        sys.exit(__doc__)
