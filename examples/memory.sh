#!/usr/bin/env bash
# Remember a decision, recall it in other words, and keep a fact that changes.
set -euo pipefail

# The same text in the same place is kept once, so a script may run again.
isolith memory add --wing shop --room deployment --author Anna --date 2026-03-01 \
  "We deploy on Tuesdays, because the on-call engineer is at her desk all day."
isolith memory search "which day is the release" --wing shop --limit 1

# --json gives a document to take values from.
isolith memory search "release day" --wing shop --limit 1 --json |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["hits"][0]["text"])'

# A fact has a time in which it is true.
isolith fact add shop "deploys on" Tuesday --from 2026-03-01
isolith fact query shop
