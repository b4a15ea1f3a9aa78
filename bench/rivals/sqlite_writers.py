"""Measures small durable transactions of many processes through Python's sqlite3.

    sqlite_writers.py FILE PROCESSES SECONDS

Prints one line of JSON: the duration of each write and the number of failures. Uses WAL,
synchronous=FULL, BEGIN IMMEDIATE and a timeout of 10 s.
"""

import json
import multiprocessing
import sqlite3
import sys
import time

SCHEMA = """
CREATE TABLE IF NOT EXISTS record (
    id TEXT PRIMARY KEY, document TEXT, metadata TEXT, vector BLOB
)
"""


def connect(path):
    database = sqlite3.connect(path, timeout=10, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    return database


def write(path, writer, barrier, seconds, results):
    database = connect(path)
    vector = bytes(4 * 8)
    done = failures = 0
    waits = []
    barrier.wait()
    end = time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        record = (f"{writer}-{done}", "a small record", '{"writer":%d}' % writer, vector)
        try:
            database.execute("BEGIN IMMEDIATE")
            database.execute("INSERT INTO record VALUES (?, ?, ?, ?)", record)
            database.execute("COMMIT")
            done += 1
        except sqlite3.OperationalError:
            failures += 1
            if database.in_transaction:
                database.execute("ROLLBACK")
        waits.append(time.perf_counter() - started)
    results.put((done, failures, waits))


def main():
    path, processes, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    connect(path).execute(SCHEMA)
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    writers = [
        context.Process(target=write, args=(path, writer, barrier, seconds, results))
        for writer in range(processes)
    ]
    for writer in writers:
        writer.start()
    parts = [results.get() for _ in writers]
    for writer in writers:
        writer.join()
    report = {
        "nanoseconds": [round(1e9 * wait) for _, _, waits in parts for wait in waits],
        "failures": sum(failures for _, failures, _ in parts),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
