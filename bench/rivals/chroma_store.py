"""Measures Chroma's PersistentClient: runs one phase and prints one line of JSON.

    chroma_store.py add|query|cold DATA STORE [ROUNDS]

DATA is the folder that the benchmark generated (see `store/data.rs`), STORE is Chroma's.
Embeddings are passed in. CPU time is that of the whole process, including native threads.
"""

import time

IMPORT_STARTED = time.process_time()

import chromadb
import numpy
from chromadb.config import Settings

IMPORT_CPU = time.process_time() - IMPORT_STARTED

import json
import os
import sys
from pathlib import Path

BATCH = 1000
LIMIT = 10


class Data:
    """The data that both sides read."""

    def __init__(self, folder):
        self.folder = Path(folder)
        shape = json.loads((self.folder / "shape.json").read_text())
        self.rows, self.dimension = shape["rows"], shape["dimension"]

    def vectors(self):
        return self.floats("vectors.f32")

    def queries(self):
        return self.floats("queries.f32")

    def documents(self):
        return (self.folder / "documents.txt").read_text().splitlines()

    def floats(self, name):
        values = numpy.fromfile(self.folder / name, dtype="<f4")
        return values.reshape(-1, self.dimension)


def record_id(row):
    return f"record-{row}"


def metadata(row):
    return {"tenth": row % 10, "thousandth": row % 1000}


def open_client(store):
    return chromadb.PersistentClient(store, settings=Settings(anonymized_telemetry=False))


def add(data, store, _rounds):
    vectors, documents = data.vectors(), data.documents()
    written_before = bytes_written()
    wall, cpu = time.perf_counter(), time.process_time()
    collection = open_client(store).create_collection(
        "bench", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
    )
    for start in range(0, data.rows, BATCH):
        rows = range(start, min(start + BATCH, data.rows))
        collection.add(
            ids=[record_id(row) for row in rows],
            embeddings=vectors[rows.start : rows.stop],
            documents=documents[rows.start : rows.stop],
            metadatas=[metadata(row) for row in rows],
        )
    added = {"wall_seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    # Work that adding defers to the first query is part of adding.
    collection.query(query_embeddings=vectors[:1], n_results=LIMIT)
    return {
        "added": added,
        "searchable": {
            "wall_seconds": time.perf_counter() - wall,
            "cpu_seconds": time.process_time() - cpu,
        },
        "written_bytes": bytes_written() - written_before,
        "disk_bytes": disk_bytes(store),
    }


def query(data, store, rounds):
    collection = open_client(store).get_collection("bench", embedding_function=None)
    queries = data.queries()
    filters = {
        "all": lambda at: None,
        "tenth": lambda at: {"tenth": at % 10},
        "thousandth": lambda at: {"thousandth": at % 1000},
    }
    measured = {}
    for name, where in filters.items():
        measured[name] = measure(collection, queries, where, rounds)
    pss = pss_bytes()
    # Brute force comes last, so that its memory and threads are not counted.
    vectors = data.vectors()
    for name, where in filters.items():
        found = measured[name].pop("found")
        measured[name]["recall"] = recall(vectors, queries, where, found)
    return {"queries": measured, "pss_bytes": pss}


def measure(collection, queries, where, rounds):
    def ask(at):
        return collection.query(
            query_embeddings=queries[at : at + 1], n_results=LIMIT, where=where(at)
        )

    for at in range(min(10, len(queries))):
        ask(at)
    found, took = [], []
    cpu = time.process_time()
    for number in range(rounds):
        for at in range(len(queries)):
            started = time.perf_counter()
            answer = ask(at)
            took.append(time.perf_counter() - started)
            if number == 0:
                found.append(answer["ids"][0])
    cpu = time.process_time() - cpu
    took.sort()
    return {
        "p50_seconds": took[len(took) // 2],
        "p99_seconds": took[min(len(took) - 1, len(took) * 99 // 100)],
        "cpu_seconds": cpu / len(took),
        "found": found,
    }


def recall(vectors, queries, where, found):
    """The share of the true nearest neighbors that were found, compared with brute force."""
    rows = numpy.arange(len(vectors))
    hits = wanted = 0
    for at, (vector, ids) in enumerate(zip(queries, found)):
        condition = where(at)
        allowed = rows
        if condition:
            ((key, value),) = condition.items()
            allowed = rows[value :: {"tenth": 10, "thousandth": 1000}[key]]
        # All vectors have unit length.
        similarity = vectors[allowed] @ vector
        best = allowed[numpy.argsort(-similarity)[:LIMIT]]
        wanted += len(best)
        hits += len({record_id(row) for row in best} & set(ids))
    return hits / wanted


def cold(data, store, _rounds):
    """Reports the CPU time after the imports; the caller measures the whole process."""
    collection = open_client(store).get_collection("bench", embedding_function=None)
    collection.query(query_embeddings=data.queries()[:1], n_results=LIMIT)
    return {"cpu_without_import_seconds": time.process_time() - IMPORT_STARTED - IMPORT_CPU}


def bytes_written():
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("write_bytes")).split()[1])


def pss_bytes():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("Pss:")).split()[1])


def disk_bytes(folder):
    return sum(
        os.path.getsize(os.path.join(where, name))
        for where, _, names in os.walk(folder)
        for name in names
    )


def main():
    phase, data, store = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    report = {"add": add, "query": query, "cold": cold}[phase](Data(data), store, rounds)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
