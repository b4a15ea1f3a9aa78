"""Brings the drawers and the facts of a MemPalace folder over to an Isolith store.

    python from_mempalace.py PALACE_FOLDER OUT_FOLDER [--run] [--store DIR]

Reads MemPalace's SQLite files, writes drawers and facts as JSONL, and prints the commands
that bring them in (with --run, runs them and compares the counts). Needs nothing but
Python 3.9 or newer, neither MemPalace nor Chroma. Run it on a copy of the folder.
"""

import argparse
import contextlib
import datetime
import itertools
import json
import math
import re
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

DRAWERS = "mempalace_drawers"
GRAPH = "knowledge_graph.sqlite3"

# What MemPalace keeps for itself: how it cut and filed a text.
HOUSEKEEPING = {
    "chroma:document", "chunk_index", "chunk_total", "parent_drawer_id", "parent_entry_id",
    "id_recipe", "normalize_version", "convo_chunker_version", "content_hash", "source_mtime",
    "source_dir_ino", "last_modified", "content_date_source",
}  # fmt: skip
# What becomes a part of the drawer, and no metadata.
PLACED = {"wing", "room", "source_file", "added_by", "agent", "topic", "date", "content_date"}

DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})")


def main():
    options = parse_arguments()
    palace = find_palace(options.palace)
    options.out.mkdir(parents=True, exist_ok=True)
    drawers, facts = options.out / "drawers.jsonl", options.out / "facts.jsonl"
    count = write_lines(drawers, read_drawers(palace, options.collection))
    import_command = [options.isolith, "memory", "import", str(drawers), "--format", "drawers"]
    import_command += ["--store", options.store] if options.store else []
    print(shlex.join(import_command), flush=True)
    left_out = []
    graph = options.graph or find_graph(palace)
    write_lines(facts, read_facts(graph, left_out) if graph else [])
    if graph is None:
        print(f"no {GRAPH} beside {palace}: name it with --graph", file=sys.stderr)
    for fact, reason in left_out:
        print(f"fact {fact} is left out: {reason}", file=sys.stderr)
    fact_commands = [fact_command(json.loads(line), options) for line in open_lines(facts)]
    for command in fact_commands:
        print(shlex.join(command), flush=True)
    complete = not left_out
    if options.run:
        complete &= import_drawers(import_command, count)
        complete &= all([add_fact(command) for command in fact_commands])
    sys.exit(0 if complete else 1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("palace", type=Path, help="MemPalace's folder; it holds chroma.sqlite3")
    parser.add_argument("out", type=Path, help="where the JSONL files go")
    parser.add_argument("--run", action="store_true", help="bring them in as well")
    parser.add_argument("--store", help="Isolith's store [default: the user's]")
    parser.add_argument("--isolith", default="isolith", help="the program [default: isolith]")
    parser.add_argument("--graph", type=Path, metavar="FILE", help=f"another {GRAPH}")
    parser.add_argument("--collection", default=DRAWERS, metavar="NAME", help="Chroma's collection")
    return parser.parse_args()


def find_palace(folder):
    """The palace itself, also where the folder around it is named."""
    for palace in (folder, folder / "palace"):
        if (palace / "chroma.sqlite3").is_file():
            return palace
    sys.exit(f"{folder} is not a palace: it has no chroma.sqlite3 (other back ends are not read)")


def find_graph(palace):
    places = [palace / GRAPH, palace.resolve().parent / GRAPH]
    return next((place for place in places if place.is_file()), None)


def open_read_only(path):
    connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    return contextlib.closing(connection)


# ---- drawers


def read_drawers(palace, collection):
    """Drawers in the order in which they were filed, each as Isolith imports it."""
    with open_read_only(palace / "chroma.sqlite3") as database:
        known = database.execute("SELECT 1 FROM collections WHERE name = ?", [collection])
        if known.fetchone() is None:
            sys.exit(f"{palace} has no collection {collection}")
        parts = parts_of_long_texts(database)
        for row, drawer_id, metadata in records(database, collection):
            if drawer_id.startswith("_reg_") or metadata.get("room") == "_registry":
                continue
            text = metadata.get("chroma:document") or ""
            parent = metadata.get("parent_drawer_id") or metadata.get("parent_entry_id")
            if parent:
                drawer_id, rows = parent, parts[parent]
                if row != min(rows):
                    continue
                text = "".join(document(database, part) for part in rows)
            if text.strip():
                yield drawer(drawer_id, text, metadata)


def parts_of_long_texts(database):
    """For each text that was filed in parts their rows, in the order of the text."""
    rows = database.execute(
        "SELECT parent.string_value, parent.id FROM embedding_metadata AS parent "
        "LEFT JOIN embedding_metadata AS place "
        "ON place.id = parent.id AND place.key = 'chunk_index' "
        "WHERE parent.key IN ('parent_drawer_id', 'parent_entry_id') "
        "GROUP BY parent.id ORDER BY place.int_value"
    )
    parts = {}
    for parent, row in rows:
        parts.setdefault(parent, []).append(row)
    return parts


def document(database, row):
    found = database.execute(
        "SELECT string_value FROM embedding_metadata WHERE id = ? AND key = 'chroma:document'",
        [row],
    ).fetchone()
    return (found and found[0]) or ""


def records(database, collection):
    """Rows, ids and metadata of all records, in their order."""
    rows = database.execute(
        "SELECT embeddings.id, embeddings.embedding_id, metadata.key, metadata.string_value, "
        "metadata.int_value, metadata.float_value, metadata.bool_value FROM embeddings "
        "JOIN segments ON segments.id = embeddings.segment_id "
        "JOIN collections ON collections.id = segments.collection "
        "JOIN embedding_metadata AS metadata ON metadata.id = embeddings.id "
        "WHERE collections.name = ? ORDER BY embeddings.id",
        [collection],
    )
    for (row, record_id), values in itertools.groupby(rows, key=lambda found: found[:2]):
        yield row, record_id, {key: value_of(*value) for _, _, key, *value in values}


def value_of(text, whole, fraction, truth):
    if truth is not None:
        return bool(truth)
    value = next((it for it in (text, whole, fraction) if it is not None), None)
    # JSON has neither infinities nor NaN.
    return None if isinstance(value, float) and not math.isfinite(value) else value


def chunk_index(metadata):
    return metadata.get("chunk_index") or 0


def drawer(drawer_id, text, metadata):
    is_diary = metadata.get("type") == "diary_entry"
    agent, added_by = metadata.get("agent"), metadata.get("added_by")
    source = metadata.get("source_file")
    row = {
        "text": text,
        # An agent's diary is in a wing that has the agent's name.
        "wing": agent if is_diary and agent else metadata.get("wing"),
        "room": "diary" if is_diary else metadata.get("room"),
        "source": f"{source}#{chunk_index(metadata)}" if source else f"mempalace:{drawer_id}",
        "author": agent or (added_by if added_by not in ("mempalace", "mcp") else None),
        "date": day_of(metadata),
        "tags": [metadata["topic"]] if metadata.get("topic") else [],
        "mempalace_id": drawer_id,
    }
    for key, value in metadata.items():
        if key not in HOUSEKEEPING | PLACED and value not in (None, ""):
            row.setdefault(key, value)
    return row


def day_of(metadata):
    """The day that a text is about, or was written or filed on."""
    for key in ("content_date", "date", "authored_at", "filed_at"):
        found = DAY.match(str(metadata.get(key) or ""))
        if found and is_day(found.group()):
            return found.group()
    return None


def is_day(text):
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def import_drawers(command, expected):
    """Whether all of them are there afterwards."""
    answer = subprocess.run([*command, "--json"], check=False, stdout=subprocess.PIPE, text=True)
    if not answer.stdout.strip():
        return False
    receipt = json.loads(answer.stdout)
    there = receipt.get("created", 0) + receipt.get("duplicates", 0)
    if there != expected:
        print(f"MemPalace has {expected} drawers, {there} came over: {answer.stdout}", file=sys.stderr)
    return answer.returncode == 0 and there == expected


# ---- facts


def read_facts(graph, left_out):
    """Facts as they were recorded; what Isolith would refuse is left out and told."""
    with open_read_only(graph) as database:
        database.row_factory = sqlite3.Row
        rows = database.execute(
            "SELECT triples.*, subjects.name AS subject_name, subjects.type AS subject_type, "
            "objects.name AS object_name, objects.type AS object_type FROM triples "
            "LEFT JOIN entities AS subjects ON subjects.id = triples.subject "
            "LEFT JOIN entities AS objects ON objects.id = triples.object "
            "ORDER BY triples.rowid"
        )
        for row in rows:
            row = dict(row)
            try:
                yield fact(row)
            except ValueError as problem:
                left_out.append((row["id"], problem))


def fact(row):
    valid_from, valid_to = moment(row["valid_from"]), moment(row["valid_to"])
    if valid_to and DAY.fullmatch(valid_to):
        # MemPalace means the whole last day, Isolith the first moment that is not in it.
        day = datetime.date.fromisoformat(valid_to) + datetime.timedelta(days=1)
        valid_to = day.isoformat()
    if valid_from and valid_to and valid_to < valid_from:
        raise ValueError(f"it ends ({valid_to}) before it begins ({valid_from})")
    known = {
        "subject": row["subject_name"] or row["subject"],
        "predicate": row["predicate"],
        "object": row["object_name"] or row["object"],
        "valid_from": valid_from,
        "valid_to": valid_to,
        "confidence": row["confidence"],
        "file": row["source_file"] or row["source_closet"],
        "subject_type": typed(row["subject_type"]),
        "object_type": typed(row["object_type"]),
    }
    return {key: value for key, value in known.items() if value is not None}


def moment(text):
    """A day or an instant with its zone; nothing if nothing was given."""
    if not text:
        return None
    if DAY.fullmatch(text) and is_day(text) or INSTANT.fullmatch(text):
        return text
    raise ValueError(f"{text!r} is neither a day nor an instant with its zone")


def typed(kind):
    return None if kind in (None, "", "unknown") else kind


def fact_command(fact, options):
    command = [options.isolith, "fact", "add", "--json"]
    flags = {
        "valid_from": "--from",
        "valid_to": "--to",
        "confidence": "--confidence",
        "file": "--file",
        "subject_type": "--subject-type",
        "object_type": "--object-type",
    }
    for key, flag in flags.items():
        if key in fact and not (key == "confidence" and fact[key] == 1.0):
            command += [flag, str(fact[key])]
    command += ["--store", options.store] if options.store else []
    return [*command, "--", fact["subject"], fact["predicate"], fact["object"]]


def add_fact(command):
    answer = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    return answer.returncode == 0


# ---- files


def write_lines(path, rows):
    count = 0
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count


def open_lines(path):
    with open(path, encoding="utf-8") as file:
        yield from file


if __name__ == "__main__":
    main()
