"""Measures Kuzu: runs one phase and prints one line of JSON.

    kuzu_graph.py load|ask|insert|cold DATA STORE

DATA is the folder that the benchmark generated (see `graph/data.rs`), STORE is Kuzu's.
CPU time is that of the whole process, including native threads. Keys are literals in the
queries: with parameters Kuzu does not use its index, and queries take up to ten times as
long.
"""

import json
import sys
import time
from pathlib import Path

import kuzu

UNCOUNTED = 10

QUESTIONS = {
    "point": "MATCH (a:P {{k: {0}}}) RETURN a.name",
    "two_hops": "MATCH (a:P {{k: {0}}})-[:E]->()-[:E]->(c:P) RETURN c.k",
    "four_hops": "MATCH (a:P {{k: {0}}})-[:E*1..4]->(c:P) RETURN DISTINCT c.k",
    "shortest": "MATCH p = (a:P {{k: {0}}})-[:E* SHORTEST 1..30]->(b:P {{k: {1}}}) "
    "RETURN length(p)",
    "top": "MATCH (a:P)-[r:E]->() RETURN a.k, count(r) AS d ORDER BY d DESC, a.k LIMIT 20",
}

INSERT = "MATCH (a:P {{k: {0}}}), (b:P {{k: {1}}}) CREATE (a)-[:E]->(b)"


def connect(store):
    return kuzu.Connection(kuzu.Database(store))


def load(data, store):
    connection = connect(store)
    watch = Watch()
    connection.execute("CREATE NODE TABLE P(k INT64 PRIMARY KEY, name STRING)")
    connection.execute("CREATE REL TABLE E(FROM P TO P)")
    connection.execute(f"COPY P FROM '{data / 'nodes.csv'}' (HEADER=true)")
    connection.execute(f"COPY E FROM '{data / 'edges.csv'}' (HEADER=true)")
    return watch.spent()


def ask(data, store):
    connection = connect(store)
    questions = read_questions(data)
    asked = {
        "point": [(key, 0) for key in questions["points"]],
        "shortest": questions["pairs"],
        "top": [(0, 0)] * UNCOUNTED,
    }
    keys = [(key, 0) for key in questions["keys"]]
    return {
        kind: measure(connection, text, asked.get(kind, keys)) for kind, text in QUESTIONS.items()
    }


def measure(connection, text, asked):
    def answer(pair):
        return connection.execute(text.format(*pair)).get_all()

    for pair in asked[:UNCOUNTED]:
        answer(pair)
    rows, total, took = 0, 0, []
    watch = Watch()
    for pair in asked:
        started = time.perf_counter()
        answers = answer(pair)
        took.append(time.perf_counter() - started)
        rows += len(answers)
        total += sum(
            len(value) if isinstance(value, str) else value for row in answers for value in row
        )
    took.sort()
    return {
        "p50_seconds": took[len(took) // 2],
        "cpu_seconds": watch.spent()["cpu_seconds"] / len(asked),
        "rows": rows,
        "sum": total,
    }


def insert(data, store):
    connection = connect(store)
    inserts = read_questions(data)["inserts"]
    for pair in inserts[:UNCOUNTED]:
        connection.execute(INSERT.format(*pair))
    watch = Watch()
    for pair in inserts:
        connection.execute(INSERT.format(*pair))
    return {name: value / len(inserts) for name, value in watch.spent().items()}


def cold(data, store):
    key = read_questions(data)["keys"][0]
    return connect(store).execute(QUESTIONS["point"].format(key)).get_all()


def read_questions(data):
    return json.loads((data / "questions.json").read_text())


class Watch:
    def __init__(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def spent(self):
        return {
            "wall_seconds": time.perf_counter() - self.wall,
            "cpu_seconds": time.process_time() - self.cpu,
        }


def main():
    phase, data, store = sys.argv[1:4]
    phases = {"load": load, "ask": ask, "insert": insert, "cold": cold}
    print(json.dumps(phases[phase](Path(data), store)))


if __name__ == "__main__":
    main()
