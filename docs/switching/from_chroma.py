"""Brings the collections of a Chroma folder over to an Isolith store.

    python from_chroma.py CHROMA_FOLDER OUT_FOLDER [--run] [--store DIR]

Reads with chromadb's own PersistentClient, writes one file of JSONL for each
collection, and prints the commands that load them (with --run, runs them and compares
the counts). Vectors are taken as they are: nothing is embedded again.
"""

import argparse
import json
import math
import re
import shlex
import subprocess
import sys
from pathlib import Path

METRICS = {"cosine": "cosine", "l2": "l2", "ip": "dot"}

# Chroma names its default model even where vectors were passed in: believed only if
# they are as long as that model's.
DEFAULT_MODEL, DEFAULT_DIMENSION = "all-MiniLM-L6-v2", 384
DEFAULT_NAMES = ("default", "onnx_mini_lm_l6_v2")

PAGE = 1000


def main():
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    complete = True
    for number, collection in enumerate(open_collections(options), start=1):
        try:
            command = bring_over(collection, number, options)
        except ValueError as problem:
            print(f"{collection.name}: {problem}", file=sys.stderr)
            complete = False
            continue
        print(shlex.join(command), flush=True)
        if options.run:
            complete &= load(collection, command, options)
    sys.exit(0 if complete else 1)


def load(collection, command, options):
    """Whether all of the collection is there afterwards."""
    expected = collection.count()
    # An empty collection is made once; loading again what is there changes nothing.
    if expected == 0 and count_of(collection, options) == 0:
        return True
    if subprocess.run(command, check=False).returncode != 0:
        return False
    count = count_of(collection, options)
    if count != expected:
        print(f"{collection.name}: Chroma has {expected}, Isolith {count}", file=sys.stderr)
    return count == expected


def count_of(collection, options):
    """How many records Isolith has, or None if there is no such collection."""
    store = ["--store", options.store] if options.store else []
    command = [options.isolith, "collection", "count", "--json", *store, "--", collection.name]
    answer = subprocess.run(command, check=False, capture_output=True, text=True)
    return json.loads(answer.stdout)["count"] if answer.returncode == 0 else None


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chroma", type=Path, help="Chroma's folder; it holds chroma.sqlite3")
    parser.add_argument("out", type=Path, help="where the JSONL files go")
    parser.add_argument("--run", action="store_true", help="load them as well")
    parser.add_argument("--store", help="Isolith's store [default: isolith's own default]")
    parser.add_argument("--isolith", default="isolith", help="the program [default: isolith]")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this collection")
    parser.add_argument("--skip-bad", action="store_true", help="leave out rows that are refused")
    parser.add_argument("--tenant", default="default_tenant")
    parser.add_argument("--database", default="default_database")
    return parser.parse_args()


def open_collections(options):
    # A client would make an empty database here.
    if not (options.chroma / "chroma.sqlite3").is_file():
        sys.exit(f"{options.chroma} is not a Chroma folder: it has no chroma.sqlite3")
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(
        str(options.chroma),
        settings=Settings(anonymized_telemetry=False),
        tenant=options.tenant,
        database=options.database,
    )
    collections, offset = [], 0
    while page := client.list_collections(limit=100, offset=offset):
        collections += page
        offset += len(page)
    wanted = options.only or [collection.name for collection in collections]
    for name in set(wanted) - {collection.name for collection in collections}:
        sys.exit(f"no collection {name!r}")
    return [collection for collection in collections if collection.name in wanted]


def bring_over(collection, number, options):
    """Writes a collection's file; returns the command that loads it."""
    configuration = collection.configuration_json or {}
    metric = metric_of(configuration, collection.metadata or {})
    path = file_of(collection, number, options)
    records, dimension, dropped = write_records(collection, path)
    settings = ["--metric", metric]
    if model := model_of(configuration, dimension):
        settings += ["--model", model]
    if options.store:
        settings += ["--store", options.store]
    if records != collection.count():
        raise ValueError(f"it changed while it was read ({records} of {collection.count()})")
    for key in sorted(dropped):
        note = f"metadata {key!r} of {dropped[key]} records is left out: JSON has no such value"
        print(f"{collection.name}: {note}", file=sys.stderr)
    if records == 0:
        path.unlink()
        return [options.isolith, "collection", "create", *settings, "--", collection.name]
    if options.skip_bad:
        settings += ["--on-error", "skip"]
    command = [options.isolith, "ingest", str(path), "--collection", collection.name]
    return command + settings


def metric_of(configuration, metadata):
    """Newer collections say it in their configuration, older ones in their metadata."""
    for index in ("hnsw", "spann"):
        if space := (configuration.get(index) or {}).get("space"):
            return METRICS[space]
    return METRICS[metadata.get("hnsw:space", "l2")]


def model_of(configuration, dimension):
    function = configuration.get("embedding_function") or {}
    if function.get("name") in DEFAULT_NAMES:
        return DEFAULT_MODEL if dimension == DEFAULT_DIMENSION else None
    config = function.get("config") or {}
    return config.get("model_name") or config.get("model")


def file_of(collection, number, options):
    plain = re.sub(r"[^\w.-]", "_", collection.name)[:60]
    return options.out / f"{number:03}-{plain}.jsonl"


def write_records(collection, path):
    records, dimension, dropped = 0, None, {}
    with open(path, "w", encoding="utf-8") as file:
        while True:
            page = collection.get(
                limit=PAGE,
                offset=records,
                include=["embeddings", "documents", "metadatas", "uris"],
            )
            if not page["ids"]:
                return records, dimension, dropped
            dimension = len(page["embeddings"][0])
            for at, record_id in enumerate(page["ids"]):
                metadata = dict((page["metadatas"] or {})[at] or {})
                if (uri := (page["uris"] or {})[at]) is not None:
                    metadata.setdefault("uri", uri)
                record = {
                    "id": record_id,
                    "document": (page["documents"] or {})[at],
                    "metadata": plain_metadata(metadata, dropped),
                }
                text = json.dumps(record, ensure_ascii=False, allow_nan=False)
                vector = write_vector(page["embeddings"][at])
                file.write(f'{text[:-1]}, "embedding": [{vector}]}}\n')
            records += len(page["ids"])


def write_vector(vector):
    """Nine digits name exactly one float of 32 bits."""
    values = [float(value) for value in vector]
    return ",".join(["%.9g"] * len(values)) % tuple(values)


def plain_metadata(metadata, dropped):
    plain = {}
    for key, value in metadata.items():
        parts = value if isinstance(value, list) else [value]
        if all(is_plain(part) for part in parts):
            plain[key] = value
        else:
            dropped[key] = dropped.get(key, 0) + 1
    return plain


def is_plain(value):
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (str, int, bool))


if __name__ == "__main__":
    main()
