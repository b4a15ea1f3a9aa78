"""Measures multiprocessing's spawn context: reads one line of JSON per round and answers with one."""

import json
import multiprocessing
import sys
import time


def echo_once(pipe):
    pipe.send_bytes(pipe.recv_bytes())


def start(context, payload):
    started = time.perf_counter_ns()
    ours, theirs = context.Pipe()
    process = context.Process(target=echo_once, args=(theirs,))
    process.start()
    ours.send_bytes(payload)
    reply = ours.recv_bytes()
    took = time.perf_counter_ns() - started
    process.join()
    assert reply == payload
    return took


def main():
    context = multiprocessing.get_context("spawn")
    payload = b"\7" * 100
    # The first start also starts multiprocessing's resource tracker, which keeps running.
    start(context, payload)
    print(json.dumps({"nanoseconds": []}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        # Not zeros, so that the pages are allocated.
        ballast = b"\1" * order["ballast"]
        took = [start(context, payload) for _ in range(order["starts"])]
        del ballast
        print(json.dumps({"nanoseconds": took}), flush=True)


if __name__ == "__main__":
    main()
