"""Compares `isolith serve --chroma` with Chroma's own server, over HTTP and with the same clients.

    chroma_server.py ISOLITH CHROMA VECTORS [--rows 100000] [--seconds 5]

ISOLITH and CHROMA are the programs, VECTORS is an array of real embeddings (.npy), whose last 400
are the queries. Needs chromadb, numpy and psutil in this interpreter, and wrk on the path. Records
are added with Chroma's Python client; queries are sent by wrk, which costs little CPU itself, from
the bodies that the Python client would send.
"""

import argparse
import contextlib
import json
import os
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import chromadb
import numpy
import psutil
from chromadb.config import Settings

BATCH = 1000
LIMIT = 10
QUERIES = 400
DATABASE = "/api/v2/tenants/default_tenant/databases/default_database"

# Sends one of the prepared bodies after the other, and prints what was measured.
WRK_SCRIPT = """
local bodies, at = {}, 0
for line in io.lines(os.getenv("BODIES")) do bodies[#bodies + 1] = line end
function request()
  at = at % #bodies + 1
  return wrk.format("POST", nil, {["Content-Type"] = "application/json"}, bodies[at])
end
function done(summary, latency)
  local errors = summary.errors
  print(string.format('RESULT {"requests":%d,"seconds":%f,"p50":%f,"p99":%f,"errors":%d}',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000,
    latency:percentile(99) / 1000,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"""


class Data:
    def __init__(self, file, rows):
        real = numpy.load(file).astype("<f4")
        base, self.queries = real[:-QUERIES], real[-QUERIES:]
        random = numpy.random.default_rng(1)
        # Rows beyond the real ones lie near one of them, about as near as real neighbours do.
        vectors = base[numpy.arange(rows) % len(base)].copy()
        noise = random.standard_normal(vectors[len(base) :].shape, dtype="f4")
        vectors[len(base) :] += noise * (0.9 / noise.shape[1] ** 0.5)
        self.vectors = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
        words = [f"word{number}" for number in range(5000)]
        chosen = random.integers(0, len(words), (rows, 40))
        self.documents = [" ".join(words[word] for word in row) for row in chosen]

    def metadata(self, row):
        return {"row": row, "tenth": row % 10, "hundredth": row % 100}

    def nearest(self, query, matching=None):
        distances = ((self.vectors - query) ** 2).sum(axis=1)
        if matching is not None:
            distances[~matching] = numpy.inf
        return set(numpy.argsort(distances)[:LIMIT].tolist())


class Server:
    """A server of either kind in a folder of its own."""

    def __init__(self, command, port, environment):
        self.command, self.port, self.environment = command, port, environment
        self.began = self.started = 0.0
        self.process = None

    def start(self):
        self.began = time.perf_counter()
        self.process = psutil.Popen(
            self.command, env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        while True:
            try:
                self.call("GET", "/api/v2/heartbeat")
                break
            except OSError:
                time.sleep(0.002)
        self.started = time.perf_counter() - self.began

    def stop(self):
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
        self.process.wait(60)

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as reply:
            return json.load(reply)

    def family(self):
        return [self.process, *self.process.children(recursive=True)]

    def cpu(self):
        """CPU seconds of the server and of its children, dead ones included."""
        total = 0.0
        for process in self.family():
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system
            total += times.children_user + times.children_system
        return total

    def memory(self):
        """Megabytes, shared pages divided among those who share them."""
        total = 0
        for process in self.family():
            try:
                total += process.memory_full_info().pss
            except psutil.NoSuchProcess:
                continue
        return total / 1e6


def add(server, data):
    client = chromadb.HttpClient(
        "127.0.0.1", server.port, settings=Settings(anonymized_telemetry=False)
    )
    collection = client.create_collection("bench", embedding_function=None)
    wall, cpu = time.perf_counter(), server.cpu()
    for start in range(0, len(data.vectors), BATCH):
        rows = range(start, min(start + BATCH, len(data.vectors)))
        collection.add(
            ids=[f"record-{row}" for row in rows],
            embeddings=data.vectors[rows.start : rows.stop],
            documents=data.documents[rows.start : rows.stop],
            metadatas=[data.metadata(row) for row in rows],
        )
    added = time.perf_counter() - wall
    # Indexing that goes on in the background is part of adding.
    quiet, last = 0, server.cpu()
    while quiet < 4:
        time.sleep(0.5)
        now = server.cpu()
        quiet = quiet + 1 if now - last < 0.02 else 0
        last = now
    assert collection.count() == len(data.vectors)
    return str(collection.id), added, last - cpu


def body(query, where=None):
    return {
        "query_embeddings": [query.tolist()], "n_results": LIMIT, "where": where,
        "include": ["documents", "metadatas", "distances"],
    }


def load(server, path, bodies, clients, seconds, folder):
    """The answers to many clients at a time."""
    (folder / "bodies").write_text("\n".join(json.dumps(it) for it in bodies) + "\n")
    (folder / "wrk.lua").write_text(WRK_SCRIPT)
    run = ["wrk", "-t", "1", "-c", str(clients), "-d", f"{seconds}s", "--timeout", "60s", "--latency"]
    cpu, front = server.cpu(), sum(server.process.cpu_times()[:2])
    out = subprocess.run(
        [*run, "-s", folder / "wrk.lua", f"http://127.0.0.1:{server.port}{path}"],
        env={**os.environ, "BODIES": str(folder / "bodies")},
        capture_output=True, text=True, check=True,
    ).stdout
    line = next(line for line in out.splitlines() if line.startswith("RESULT "))
    measured = json.loads(line.removeprefix("RESULT "))
    requests = max(measured["requests"], 1)
    measured["cpu"] = 1000 * (server.cpu() - cpu) / requests
    measured["front"] = 1000 * (sum(server.process.cpu_times()[:2]) - front) / requests
    return measured


def recall(server, path, data, where=None, matching=None):
    found = 0
    sample = data.queries[::4]
    for query in sample:
        reply = server.call("POST", path, body(query, where))
        ids = {int(it.removeprefix("record-")) for it in reply["ids"][0]}
        found += len(ids & data.nearest(query, matching))
    return found / (LIMIT * len(sample))


def measure(server, data, seconds, folder):
    rows = {}
    server.start()
    rows["start, empty, ms"] = 1000 * server.started
    collection, wall, cpu = add(server, data)
    rows["add, records a CPU-second"] = len(data.vectors) / cpu
    rows["add, records a second"] = len(data.vectors) / wall
    rows["memory after adding, MB"] = server.memory()
    server.stop()
    server.start()
    path = f"{DATABASE}/collections/{collection}/query"
    server.call("POST", path, body(data.queries[0]))
    rows["start to the first answer, ms"] = 1000 * (time.perf_counter() - server.began)
    rows["recall@10"] = recall(server, path, data)
    tenth = numpy.arange(len(data.vectors)) % 10 == 3
    rows["recall@10, filtered"] = recall(server, path, data, {"tenth": 3}, tenth)
    kinds = [("query", None), ("a tenth matches", {"tenth": 3}), ("a hundredth", {"hundredth": 3})]
    for name, where in kinds:
        bodies = [body(query, where) for query in data.queries]
        for clients in (1, 8, 64):
            measured = load(server, path, bodies, clients, seconds, folder)
            label = f"{name}, {clients} client{'s' if clients > 1 else ''}"
            for value in ("p50", "p99"):
                rows[f"{label}, {value}, ms"] = measured[value]
            rows[f"{label}, CPU a query, ms"] = measured["cpu"]
            rows[f"{label}, of it the main process"] = measured["front"]
            rows[f"{label}, errors"] = measured["errors"]
    rows["memory after queries, MB"] = server.memory()
    server.stop()
    return rows


def is_more_better(row):
    return row.startswith(("add,", "recall"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("isolith")
    parser.add_argument("chroma")
    parser.add_argument("vectors")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    data = Data(options.vectors, options.rows)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        ours = [options.isolith, "serve", "--chroma", "--no-token", "--listen", "127.0.0.1:8701"]
        ours += ["--store", str(folder / "store")]
        theirs = [options.chroma, "run", "--path", str(folder / "chroma"), "--port", "8702"]
        homes = {f"XDG_{kind}_HOME": str(folder / kind) for kind in ("DATA", "STATE", "CONFIG")}
        results = {}
        for name, server in {
            "isolith": Server(ours, 8701, homes), "Chroma": Server(theirs, 8702, {}),
        }.items():
            results[name] = measure(server, data, options.seconds, folder)
    print(f"{'':44} {'isolith':>10} {'Chroma':>10} {'ratio':>8}")
    for row, value in results["isolith"].items():
        other = results["Chroma"][row]
        better, worse = (value, other) if is_more_better(row) else (other, value)
        ratio = better / worse if worse else float("nan")
        print(f"{row:44} {value:10.3f} {other:10.3f} {ratio:8.2f}")


if __name__ == "__main__":
    main()
