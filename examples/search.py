#!/usr/bin/env python3
"""Index a folder and search it: search.py FOLDER WORD..."""
import json
import subprocess
import sys


def isolith(folder, *arguments):
    """Runs a command with --json and returns its document."""
    command = ["isolith", *arguments, "--json", "--quiet"]
    ran = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    document = json.loads(ran.stdout)
    if "error" in document:
        # Exit codes are stable: 3 bad input, 4 not found, 75 try again ...
        sys.exit(ran.returncode)
    return document


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder, query = sys.argv[1], " ".join(sys.argv[2:])
    # The first run indexes everything, later ones only what changed.
    files = isolith(folder, "index")["files"]
    print(f"{files['seen']} files, {files['indexed']} indexed now", file=sys.stderr)
    answer = isolith(folder, "search", query, "--limit", "5")
    if answer["degraded"]:
        print(f"incomplete: {answer['degraded']}", file=sys.stderr)
    for hit in answer["hits"]:
        print(f"{hit['path']}:{hit['start_line']}  {hit['symbol'] or ''}  {hit['score']:.2f}")


main()
