"""Compares isolith.kuzu with Kuzu: the same program on both, in one run.

    python_kuzu.py [--nodes 100000] [--edges 300000]

Needs isolith and kuzu in this interpreter. Each runs in a process of its own; memory and CPU time are
those of the process and of the ones that it started. Queries are warm. Kuzu does not use its index if a
key is a parameter, so both forms are measured. A ratio above 1 is in favour of Isolith.
"""

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from python_timing import imported, median_us

MODULES = ("isolith.kuzu", "kuzu")


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def descendants():
    """The processes that this one started, and those that they started."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
    own = int(Path("/proc/self").readlink().name)
    tree = {own}
    while True:
        more = {pid for pid, parent in parents.items() if parent in tree} - tree
        if not more:
            return tree - {own}
        tree |= more


def tree_pss_mb():
    """The memory of this process and its descendants, with shared pages counted once."""
    total = 0
    for pid in {*descendants(), "self"}:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1e3


def tree_cpu_ms():
    """The CPU time of this process and its descendants, so far."""
    total = 1e9 * time.process_time()
    for pid in descendants():
        for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                total += int(thread.read_text().split()[0])
            except OSError:
                continue
    return total / 1e6


def measure(name, folder, nodes, edges):
    """What one of them takes, by what is done."""
    kuzu = importlib.import_module(name)
    (folder / "nodes.csv").write_text("".join(f"{key},n{key}\n" for key in range(nodes)))
    ends = ((7919 * at % nodes, (104729 * at + at // nodes) % nodes) for at in range(edges))
    (folder / "edges.csv").write_text("".join(f"{start},{end}\n" for start, end in ends))
    figures = {}
    database = kuzu.Database(str(folder / "store"))
    connection = kuzu.Connection(database)
    run = connection.execute
    # Creates what a database consists of.
    run("RETURN 1")
    tables = (
        "CREATE NODE TABLE P(k INT64 PRIMARY KEY, name STRING);"
        "CREATE REL TABLE E(FROM P TO P)"
    )
    figures["declare 2 tables, ms"] = 1e3 * timed(lambda: run(tables))
    for table, what in (("P", f"{nodes} nodes"), ("E", f"{edges} relationships")):
        file = "nodes.csv" if table == "P" else "edges.csv"
        before = tree_cpu_ms()
        copy = f"COPY {table} FROM '{folder}/{file}' (HEADER=false)"
        figures[f"COPY {what}, s"] = timed(lambda copy=copy: run(copy))
        figures[f"COPY {what}, CPU ms"] = tree_cpu_ms() - before
    # What is done in the background after loading is over.
    time.sleep(3)

    def key(number):
        return number * 7919 % nodes

    def point(number):
        query = f"MATCH (a:P {{k: {key(number)}}}) RETURN a.name"
        assert run(query).get_all() == [[f"n{key(number)}"]]

    def point_parameter(number):
        query = "MATCH (a:P {k: $k}) RETURN a.name"
        assert run(query, {"k": key(number)}).get_all() == [[f"n{key(number)}"]]

    def node(number):
        (row,) = run(f"MATCH (a:P {{k: {key(number)}}}) RETURN a").get_all()
        assert row[0]["name"] == f"n{key(number)}"

    def two_hops(number):
        query = f"MATCH (a:P {{k: {key(number)}}})-[:E]->()-[:E]->(c:P) RETURN count(*)"
        run(query).get_all()

    def insert(number):
        run(f"CREATE (:P {{k: {nodes + time.perf_counter_ns()}, name: 'new'}})")

    figures["point query, us"] = median_us(point, 1000)
    figures["point query with a parameter, us"] = median_us(point_parameter, 1000)
    figures["a node, us"] = median_us(node, 1000)
    figures["two hops, us"] = median_us(two_hops, 500)
    before = tree_cpu_ms()
    figures["insert, durable, us"] = median_us(insert, 300)
    # With those that warm up.
    figures["insert, durable, CPU us"] = 1e3 * (tree_cpu_ms() - before) / 330
    figures["memory, MB"] = tree_pss_mb()
    connection.close()
    database.close()
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=300_000)
    parser.add_argument("--only", choices=MODULES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        with tempfile.TemporaryDirectory() as scratch:
            figures = measure(options.only, Path(scratch), options.nodes, options.edges)
        print(json.dumps(figures))
        return
    columns = []
    for module in MODULES:
        command = [sys.executable, __file__, "--only", module]
        command += ["--nodes", str(options.nodes), "--edges", str(options.edges)]
        took, memory = imported(f"from {module} import Connection, Database")
        figures = {"import, ms": took, "import, MB": memory}
        out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        columns.append({**figures, **json.loads(out)})
    ours, theirs = columns
    print(f"{'':40} {'isolith':>10} {'Kuzu':>10} {'ratio':>8}")
    for row, own in ours.items():
        print(f"{row:40} {own:10.2f} {theirs[row]:10.2f} {theirs[row] / own:8.2f}")


if __name__ == "__main__":
    main()
