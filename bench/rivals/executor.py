"""Measures ProcessPoolExecutor: reads one line of JSON per round and answers with one."""

import json
import os
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool


def echo(payload):
    return payload


def compute(nanoseconds):
    """Spins for CPU time, as our side does, so that waiting does not count as work."""
    until = time.thread_time_ns() + nanoseconds
    while time.thread_time_ns() < until:
        pass


def crash():
    os.abort()


pools = {}


def pool(workers):
    """The executor with this many workers, all started."""
    if workers not in pools:
        pools[workers] = ProcessPoolExecutor(workers)
        wait([pools[workers].submit(compute, 10_000_000) for _ in range(4 * workers)])
    return pools[workers]


def measure_echo(order):
    executor = pool(1)
    payload = b"\7" * order["size"]
    took = []
    for _ in range(order["calls"] + order["uncounted"]):
        started = time.perf_counter_ns()
        reply = executor.submit(echo, payload).result()
        took.append(time.perf_counter_ns() - started)
        assert len(reply) == len(payload)
    return took[order["uncounted"]:]


def measure_throughput(order):
    executor = pool(order["workers"])
    function, argument = {
        "echo": (echo, b"\7" * 100),
        "compute": (compute, order["compute_nanoseconds"]),
    }[order["job"]]
    started = time.perf_counter_ns()
    futures = [executor.submit(function, argument) for _ in range(order["calls"])]
    wait(futures)
    took = time.perf_counter_ns() - started
    for future in futures:
        future.result()
    return [took]


def measure_crash(order):
    """A broken executor stays broken, so the next answer comes from a new one."""
    took = []
    executor = ProcessPoolExecutor(1)
    executor.submit(echo, b"").result()
    for _ in range(order["crashes"]):
        started = time.perf_counter_ns()
        try:
            executor.submit(crash).result()
        except BrokenProcessPool:
            broken, executor = executor, ProcessPoolExecutor(1)
        executor.submit(echo, b"").result()
        took.append(time.perf_counter_ns() - started)
        broken.shutdown()
    executor.shutdown()
    return took


MEASUREMENTS = {
    "echo": measure_echo,
    "throughput": measure_throughput,
    "crash": measure_crash,
}


def main():
    # Without core dumps, which would be measured with the crash.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(json.dumps({"nanoseconds": []}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        took = MEASUREMENTS[order["measure"]](order)
        print(json.dumps({"nanoseconds": took}), flush=True)
    for executor in pools.values():
        executor.shutdown()


if __name__ == "__main__":
    main()
