"""Measures isolith.isolate beside other ways to run a Python function in another process.

    pip install pebble==5.1.0 loky==3.5.5
    PYTHONPATH=clients/python/src python bench/rivals/python_isolate.py

Each candidate runs in a process of its own, in several rounds that take turns, with one worker.
A candidate that is not installed is left out. On a crash a candidate may report an error, break
and need a new pool, or never answer; what it did is in the last column.
"""

import argparse
import importlib
import json
import multiprocessing
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

#: How long a call may go without an answer before the candidate is said to hang.
PATIENCE = 5.0


def add(a, b):
    return a + b


def segfault(number):
    """Not through ctypes or faulthandler, so that no candidate does more than die."""
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(100)


class Isolith:
    def __init__(self):
        self.isolate = importlib.import_module("isolith.isolate")
        self.pool = self.isolate.Pool(workers=1, retries=0)

    def call(self, function, *args):
        return self.pool.run(function, *args)

    def crash(self, number):
        try:
            self.pool.run(segfault, number)
        except self.isolate.WorkerDied as error:
            return f"error: {error.crash_class}"

    def close(self):
        self.pool.close()


class MultiprocessingPool:
    method = "fork"

    def __init__(self):
        self.context = multiprocessing.get_context(self.method)
        self.pool = self.context.Pool(1)

    def call(self, function, *args):
        return self.pool.apply(function, args)

    def crash(self, number):
        try:
            self.pool.apply_async(segfault, (number,)).get(PATIENCE)
        except multiprocessing.TimeoutError:
            return "no answer"

    def close(self):
        self.pool.terminate()
        self.pool.join()


class MultiprocessingSpawnPool(MultiprocessingPool):
    method = "spawn"


class Executor:
    method = "fork"

    def __init__(self):
        self.context = multiprocessing.get_context(self.method)
        self.pool = ProcessPoolExecutor(1, mp_context=self.context)

    def call(self, function, *args):
        return self.pool.submit(function, *args).result()

    def crash(self, number):
        try:
            self.pool.submit(segfault, number).result()
        except BrokenProcessPool:
            self.pool.shutdown()
            self.pool = ProcessPoolExecutor(1, mp_context=self.context)
            return "pool breaks"

    def close(self):
        self.pool.shutdown()


class SpawnExecutor(Executor):
    method = "spawn"


class Pebble:
    def __init__(self):
        self.pebble = importlib.import_module("pebble")
        self.pool = self.pebble.ProcessPool(1)

    def call(self, function, *args):
        return self.pool.schedule(function, args=args).result()

    def crash(self, number):
        try:
            self.pool.schedule(segfault, args=(number,)).result()
        except self.pebble.ProcessExpired:
            return "error: expired"

    def close(self):
        self.pool.close()
        self.pool.join()


class Loky:
    def __init__(self):
        self.loky = importlib.import_module("loky")
        self.pool = self.loky.get_reusable_executor(1)

    def call(self, function, *args):
        return self.pool.submit(function, *args).result()

    def crash(self, number):
        try:
            self.pool.submit(segfault, number).result()
        except BrokenProcessPool:
            self.pool = self.loky.get_reusable_executor(1)
            return "pool breaks"

    def close(self):
        self.pool.shutdown()


CANDIDATES = {
    "isolith": Isolith,
    "multiprocessing.Pool, fork": MultiprocessingPool,
    "multiprocessing.Pool, spawn": MultiprocessingSpawnPool,
    "ProcessPoolExecutor, fork": Executor,
    "ProcessPoolExecutor, spawn": SpawnExecutor,
    "pebble": Pebble,
    "loky": Loky,
}


def timed(function, *args):
    started = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - started, result


def worker_memory():
    """The mean PSS of this process's children, in bytes."""
    sizes = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = file.read().rpartition(")")[2].split()[1]
            with open(f"/proc/{name}/smaps_rollup") as file:
                fields = dict(line.split(None, 1) for line in file if ":" in line.split()[0])
        except OSError:
            continue
        if int(parent) == os.getpid() and b"resource_tracker" not in command(name):
            sizes.append(int(fields["Pss:"].split()[0]) * 1024)
    return statistics.mean(sizes)


def command(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


def measure(name, calls, crashes):
    """One round of one candidate, in this process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    candidate = CANDIDATES[name]

    def start():
        made = candidate()
        assert made.call(add, 1, 2) == 3
        return made

    start_time, made = timed(start)
    for _ in range(calls // 10):
        made.call(add, 1, 2)
    warm = [timed(made.call, add, number, 2)[0] for number in range(calls)]
    content = b"\7" * (1 << 20)
    large = [timed(made.call, len, content)[0] for _ in range(calls // 10)]
    time.sleep(0.3)
    memory = worker_memory()
    crash_times, recovered, what = [], [], None
    for number in range(crashes):
        took, what = timed(made.crash, number)
        crash_times.append(took)
        if what != "no answer":
            recovered.append(took + timed(made.call, add, 1, 2)[0])
        elif number == 0:
            # It would be the same again.
            break
        time.sleep(0.2)
    made.close()
    return {
        "start": [start_time],
        "warm": warm,
        "large": large,
        "memory": [memory],
        "crash": crash_times,
        "recovered": recovered,
        "what": what,
    }


def run_round(name, calls, crashes):
    arguments = [sys.executable, __file__, "--one", name]
    arguments += ["--calls", str(calls), "--crashes", str(crashes)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)
    print(f"left out: {name}\n{done.stderr}", file=sys.stderr)
    return None


def quantile(samples, share):
    ordered = sorted(samples)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else None


COLUMNS = [
    ("warm call p50", "warm", 0.5, 1e6, "us"),
    ("p99", "warm", 0.99, 1e6, "us"),
    ("1 MB argument", "large", 0.5, 1e3, "ms"),
    ("start", "start", 0.5, 1e3, "ms"),
    ("PSS per worker", "memory", 0.5, 2.0**-20, "MB"),
    ("crash to error", "crash", 0.5, 1e3, "ms"),
    ("to next answer", "recovered", 0.5, 1e3, "ms"),
]


def cell(value, base, scale, unit):
    if value is None:
        return "never"
    ratio = f" ({value / base:.1f}x)" if base else ""
    return f"{value * scale:.3g} {unit}{ratio}"


def table(results):
    """Rows of text; ratios are to the first candidate."""
    rows = [["", *[title for title, *_ in COLUMNS], "on SIGSEGV"]]
    first = next(iter(results.values()))
    for name, samples in results.items():
        row = [name]
        for _, key, share, scale, unit in COLUMNS:
            value = quantile(samples[key], share)
            if key == "crash" and samples["what"] == "no answer":
                value = None
            row.append(cell(value, quantile(first[key], share), scale, unit))
        rows.append([*row, samples["what"]])
    return rows


def print_table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=1000, help="warm calls in each round")
    parser.add_argument("--crashes", type=int, default=4, help="crashes in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.calls, options.crashes)))
        return
    results = {}
    for _ in range(options.rounds):
        for name in CANDIDATES:
            samples = run_round(name, options.calls, options.crashes)
            if samples is None:
                continue
            merged = results.setdefault(name, {})
            for key, value in samples.items():
                merged[key] = value if key == "what" else merged.get(key, []) + value
    print_table(table(results))


if __name__ == "__main__":
    main()
