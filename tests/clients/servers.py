#!/usr/bin/env python3
"""Two servers and the command line on one store, while clients write and workers are killed; and a server
with 1,000 idle and 200 busy connections."""
import argparse, asyncio, json, os, pathlib, random, signal, threading, time

import chromadb

from place import Place, children_of, token_of

SECONDS = 60
IDLE, BUSY = 1_000, 200
DIMENSION = 32
DATABASE = "/api/v2/tenants/default_tenant/databases/default_database"


def port_of(server):
    return int(server["url"].removesuffix("/mcp").rsplit(":", 1)[1])


def client_of(server):
    return chromadb.HttpClient("127.0.0.1", port_of(server), headers=token_of(server))


def memory(pid):
    """Megabytes of a server and its workers, shared pages divided."""
    total = 0
    for one in [pid, *children_of(pid)]:
        try:
            lines = pathlib.Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1000


class Shared:
    """What clients wrote to one store, and what went wrong."""

    def __init__(self, seconds):
        self.until = time.monotonic() + seconds
        self.written, self.problems = [], []
        self.kills = 0

    def going_on(self):
        return time.monotonic() < self.until and not self.problems

    def guarded(self, work):
        def run():
            try:
                work()
            except Exception as problem:  # noqa: BLE001 - every kind fails the test
                self.problems.append(repr(problem))

        return threading.Thread(target=run)


def vectors(ids):
    return [[random.Random(f"{id} {place}").random() for place in range(DIMENSION)] for id in ids]


def write(shared, server, writer):
    collection = client_of(server).get_collection("shared", embedding_function=None)
    batch = 0
    while shared.going_on():
        ids = [f"{writer}-{batch}-{place}" for place in range(20)]
        collection.add(ids=ids, embeddings=vectors(ids), documents=ids)
        shared.written += ids
        batch += 1
        if batch % 10 == 0:
            seen = collection.get(ids=ids, include=[])["ids"]
            assert sorted(seen) == sorted(ids), f"{writer} does not see what it wrote"


def load(shared, place):
    batch = 0
    while shared.going_on():
        ids = [f"line-{batch}-{place}" for place in range(50)]
        rows = ({"id": id, "embedding": vector} for id, vector in zip(ids, vectors(ids)))
        (place.project / "batch.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        place.run("ingest", "batch.jsonl", "--collection", "shared", "--store", place.store, "--quiet")
        shared.written += ids
        batch += 1


def kill(shared, servers):
    while shared.going_on():
        time.sleep(random.uniform(0.2, 1.0))
        workers = children_of(*(server["pid"] for server in servers))
        if workers:
            try:
                os.kill(random.choice(workers), signal.SIGKILL)
                shared.kills += 1
            except ProcessLookupError:
                pass


def one_store(place, seconds):
    flags = ["--chroma", "--store", place.store]
    with place.http(*flags) as first, place.http(*flags) as second:
        client_of(first).create_collection("shared", embedding_function=None)
        shared = Shared(seconds)
        work = [lambda server=server, n=n: write(shared, server, f"{n}{server['url'][-8:-4]}") for server in (first, second) for n in range(3)]
        threads = [shared.guarded(it) for it in (*work, lambda: load(shared, place), lambda: kill(shared, [first, second]))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not shared.problems, shared.problems
        for server in (first, second):
            collection = client_of(server).get_collection("shared", embedding_function=None)
            stored = collection.get(include=[])["ids"]
            missing, extra = set(shared.written) - set(stored), set(stored) - set(shared.written)
            assert not missing and not extra and len(stored) == len(shared.written), (len(missing), len(extra))
        counted = json.loads(place.run("collection", "count", "shared", "--store", place.store, "--json"))
        assert counted["count"] == len(shared.written), counted
    print(f"one store: {len(shared.written)} records from 6 clients and the command line, {shared.kills} workers killed, none lost, none twice")


async def ask(reader, writer, request):
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    body = await reader.readexactly(length)
    assert head.startswith(b"HTTP/1.1 200"), head + body
    return body


async def crowd(server, path, seconds):
    port, token = port_of(server), token_of(server)["Authorization"]
    usual = f"Host: 127.0.0.1:{port}\r\nAuthorization: {token}\r\nContent-Type: application/json\r\n"
    beat = f"GET /api/v2/heartbeat HTTP/1.1\r\n{usual}\r\n".encode()
    idle = []
    for _ in range(IDLE):
        idle.append(await asyncio.open_connection("127.0.0.1", port))
        await ask(*idle[-1], beat)
    before, answered, until = memory(server["pid"]), 0, time.monotonic() + seconds
    highest = before

    async def busy(number):
        nonlocal answered
        connection = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps({"query_embeddings": vectors([number]), "n_results": 10})
        request = f"POST {path} HTTP/1.1\r\n{usual}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        while time.monotonic() < until:
            reply = json.loads(await ask(*connection, request))
            assert len(reply["ids"][0]) == 10, reply
            answered += 1

    async def watch():
        nonlocal highest
        while time.monotonic() < until:
            highest = max(highest, memory(server["pid"]))
            await asyncio.sleep(2)

    await asyncio.gather(watch(), *(busy(number) for number in range(BUSY)))
    for connection in idle:
        await ask(*connection, beat)
    assert highest < before + 200, f"memory grew from {before:.0f} to {highest:.0f} MB"
    print(f"connections: {IDLE} idle, {BUSY} busy, {answered} queries in {seconds} s, no error; {before:.0f} MB before, {highest:.0f} at most")


def many_connections(place, seconds):
    with place.http("--chroma", "--store", place.store) as server:
        collection = client_of(server).create_collection("crowd", embedding_function=None)
        ids = [str(number) for number in range(2_000)]
        collection.add(ids=ids, embeddings=vectors(ids), documents=ids)
        asyncio.run(crowd(server, f"{DATABASE}/collections/{collection.id}/query", seconds))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=SECONDS)
    options = parser.parse_args()
    for test in (one_store, many_connections):
        with Place(options.program) as place:
            place.store = str(place.folder / "store")
            test(place, options.seconds)


if __name__ == "__main__":
    main()
