"""Compares the Python package with Kuzu and chromadb, in one run.

    python_package.py VECTORS [--rows 20000]

VECTORS is an array of real embeddings (.npy). Needs isolith, kuzu, chromadb and numpy in this
interpreter. Kuzu and chromadb run inside this process; Isolith's program is a process of its own. A
ratio above 1 is in favour of Isolith.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy

from python_timing import imported, median_us

LIMIT = 10


def graphs(folder, nodes):
    """A node by its key, in both."""
    import isolith
    import kuzu

    connection = kuzu.Connection(kuzu.Database(str(folder / "kuzu")))
    connection.execute("CREATE NODE TABLE P(k INT64 PRIMARY KEY, name STRING)")
    connection.execute(f"UNWIND range(0, {nodes - 1}) AS i CREATE (:P {{k: i, name: 'n'}})")

    def ask_kuzu(number):
        # With parameters, Kuzu does not use its index.
        connection.execute(f"MATCH (a:P {{k: {number * 7919 % nodes}}}) RETURN a.name").get_next()

    with isolith.open(folder / "graph") as db:
        db.graph.query(f"UNWIND range(0, {nodes - 1}) AS i CREATE (:P {{k: i, name: 'n'}})")

        def ask(number):
            query = "MATCH (a:P {k: $k}) RETURN a.name"
            assert db.graph.query(query, {"k": number * 7919 % nodes}).rows == [["n"]]

        return median_us(ask, 1000), median_us(ask_kuzu, 1000)


def collections(folder, vectors):
    """Adding in batches and one by one, queries, and looking a record up."""
    import chromadb
    import isolith
    from chromadb.config import Settings

    ids = [str(number) for number in range(len(vectors))]
    texts = [f"the document number {number}" for number in range(len(vectors))]
    settings = Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(folder / "chroma"), settings=settings)
    theirs = client.create_collection("bench", embedding_function=None)
    with isolith.open(folder / "vectors") as db:
        ours = db.create_collection("bench", dimension=vectors.shape[1], metric="l2")
        figures = {}
        add = timed(lambda: ours.add(ids=ids, vectors=vectors, documents=texts))
        figures[f"add {len(ids)} records, s"] = add, timed(lambda: add_all(theirs, ids, vectors, texts))
        figures["add one record, us"] = (
            median_us(lambda at: ours.add([{"id": f"x{at}-{time.time()}", "vector": vectors[at]}]), 200),
            median_us(lambda at: theirs.add(ids=[f"x{at}-{time.time()}"], embeddings=[vectors[at]]), 200),
        )
        figures["query, us"] = (
            median_us(lambda at: ours.query(vector=vectors[at], limit=LIMIT), 500),
            median_us(lambda at: theirs.query(query_embeddings=[vectors[at]], n_results=LIMIT), 500),
        )
        figures["get one record, us"] = (
            median_us(lambda at: ours.get_one(ids[at]), 500),
            median_us(lambda at: theirs.get(ids=[ids[at]]), 500),
        )
        return figures


def add_all(collection, ids, vectors, texts):
    for start in range(0, len(ids), 5000):
        part = slice(start, start + 5000)
        collection.add(ids=ids[part], embeddings=vectors[part], documents=texts[part])


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vectors")
    parser.add_argument("--rows", type=int, default=10_000)
    options = parser.parse_args()
    vectors = numpy.load(options.vectors).astype("<f4")[: options.rows]
    ours = imported("import isolith")
    rows = {}
    for rival in ("kuzu", "chromadb"):
        theirs = imported(f"import {rival}")
        rows[f"import, ms, {rival}"] = ours[0], theirs[0]
        rows[f"import, MB, {rival}"] = ours[1], theirs[1]
    with tempfile.TemporaryDirectory() as scratch:
        rows["point query, us, kuzu"] = graphs(Path(scratch), 100_000)
        for label, figures in collections(Path(scratch), vectors).items():
            rows[f"{label}, chromadb"] = figures
    print(f"{'':40} {'isolith':>10} {'rival':>10} {'ratio':>8}")
    for row, (own, other) in rows.items():
        print(f"{row:40} {own:10.2f} {other:10.2f} {other / own:8.2f}")


if __name__ == "__main__":
    main()
