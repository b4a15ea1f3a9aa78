"""Many Python processes on one store while its workers and servers are killed at random.

    python_crowd.py [SECONDS] [PROCESSES]

Needs the package `isolith` in this interpreter. Each process writes from two threads and from asyncio,
beside threads that keep the processors busy in native code. Nothing that was acknowledged may be lost,
nothing may be stored that was not sent, and no interpreter may die.
"""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import isolith
import isolith.aio

THREADS = 2


def keep_busy(end):
    """Native code that releases the interpreter's lock, like that of numeric libraries."""
    while time.time() < end:
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 20_000)
        time.sleep(0.05)


def record(id, number):
    return {"id": id, "vector": [1.0, float(number)], "document": f"the record {id}"}


def write(db, name, end, acknowledged, errors):
    notes = db.collection("notes")
    for number in range(1_000_000):
        if time.time() > end:
            return
        id = f"{name}-{number}"
        try:
            notes.upsert([record(id, number)])
            acknowledged.append(id)
            db.memory.search("nothing")
        except isolith.Error as error:
            errors.append(repr(error))


async def write_async(store, name, end, acknowledged, errors):
    async with isolith.aio.open(store) as db:
        notes = db.collection("notes")
        for number in range(1_000_000):
            if time.time() > end:
                return
            id = f"{name}-{number}"
            try:
                await notes.upsert([record(id, number)])
                acknowledged.append(id)
            except isolith.Error as error:
                errors.append(repr(error))


def member(store, number, seconds, results):
    acknowledged, errors, end = [], [], time.time() + seconds
    threading.Thread(target=keep_busy, args=(end,), daemon=True).start()
    with isolith.open(store) as db:
        threads = [
            threading.Thread(
                target=write, args=(db, f"{number}-{thread}", end, acknowledged, errors)
            )
            for thread in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        asyncio.run(write_async(store, f"{number}-async", end, acknowledged, errors))
        for thread in threads:
            thread.join()
    results.put((acknowledged, errors))


def processes_of(store):
    """The servers of the store, and their workers."""
    servers, parents = [], {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if b"serve" in command and store.encode() in command:
            servers.append(int(folder.name))
    return servers, [pid for pid, parent in parents.items() if parent in servers]


def kill_some(store, end):
    """Kills workers, and now and then a server; returns how many of each."""
    chance, killed = random.Random(1), [0, 0]
    while time.time() < end:
        time.sleep(0.2)
        servers, workers = processes_of(store)
        of_servers = chance.random() < 0.1
        victims = servers if of_servers else workers
        if victims:
            try:
                os.kill(chance.choice(victims), signal.SIGKILL)
                killed[of_servers] += 1
            except ProcessLookupError:
                pass
    return killed


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 120
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 16
    spawning = multiprocessing.get_context("spawn")
    results = spawning.Queue()
    with tempfile.TemporaryDirectory(prefix="isolith-crowd-") as folder:
        store = str(Path(folder) / "store")
        with isolith.open(store) as db:
            db.create_collection("notes", dimension=2)
        members = [
            spawning.Process(target=member, args=(store, number, seconds, results))
            for number in range(count)
        ]
        for process in members:
            process.start()
        time.sleep(3)
        workers, servers = kill_some(store, time.time() + seconds - 3)
        outcomes = [results.get(timeout=300) for _ in members]
        for process in members:
            process.join()
        acknowledged = {id for ids, _ in outcomes for id in ids}
        errors = [error for _, failed in outcomes for error in failed]
        with isolith.open(store) as db:
            stored = {record.id for record in db.collection("notes").records(page_size=5000)}
    lost, codes = acknowledged - stored, {process.exitcode for process in members}
    print(
        f"{count} processes, {seconds:.0f} s, {workers} workers and {servers} servers killed: "
        f"{len(acknowledged)} writes acknowledged, {len(lost)} lost, {len(errors)} errors"
    )
    # A write whose answer was lost may be stored without having been acknowledged.
    unknown = len(stored - acknowledged)
    if lost or codes != {0} or unknown > len(errors):
        sys.exit(f"lost {sorted(lost)[:5]}, exit codes {codes}, {unknown} unknown; {errors[:3]}")


if __name__ == "__main__":
    main()
