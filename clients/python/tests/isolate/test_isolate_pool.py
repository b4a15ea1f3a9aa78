"""Pools: calls, results, futures, batches, the breaker, warm-up, closing."""

from __future__ import annotations

import asyncio
import datetime
import functools
import importlib
import logging
import math
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, wait
from pathlib import Path
from typing import Any

import pytest

import isolate_faults as faults
import isolith.isolate as isolate
from isolate_support import eventually
from isolith.isolate import _process
from isolith.isolate._keeper import Keeper
from isolith.isolate.pool import Pool

Start = Callable[..., Pool]


# Calls and results.


def test_results_and_large_arguments(start: Start) -> None:
    pool = start()
    assert pool.run(math.sqrt, 16.0) == 4.0
    value = {"rows": [(1, b"x"), {"when": datetime.date(2026, 1, 2)}], "big": 10**30}
    assert pool.run(faults.echo, value) == value
    large = os.urandom(5 << 20)
    assert pool.run(faults.echo, large) == large
    assert pool.run(functools.partial(int, base=16), "ff") == 255


def test_functions_that_a_worker_cannot_import_are_refused(start: Start) -> None:
    pool = start()

    def local() -> None: ...

    for function, reason in [
        (lambda: 1, "a lambda cannot be sent"),
        (local, "inside another function"),
        (Path("/").exists, "bound method"),
        (5, "not a function"),
    ]:
        with pytest.raises(isolate.NotSendable, match=reason):
            pool.run(function)  # type: ignore[arg-type]
    with pytest.raises(isolate.NotSendable, match="cannot send the arguments"):
        pool.run(faults.echo, threading.Lock())
    assert isinstance(isolate.NotSendable(), TypeError)


def test_results_that_are_not_plain_are_refused(start: Start) -> None:
    pool = start(max_result_bytes=1000)
    with pytest.raises(isolate.NotPlain, match="not plain data: it contains an object of type"):
        pool.run(faults.unsendable)
    with pytest.raises(isolate.TooLarge, match="exceeds the limit of 1000"):
        pool.run(faults.echo, b"x" * 1001)
    with pytest.raises(isolate.TooLarge, match="arguments of"):
        start(max_argument_bytes=100).run(faults.echo, b"x" * 101)
    assert sum(pool.status().deaths.values()) == 0


def test_numpy(start: Start) -> None:
    numpy = pytest.importorskip("numpy")
    pool = start(numpy=True)
    array = numpy.arange(12.0).reshape(3, 4)
    assert (pool.run(faults.numpy_double, array) == array * 2).all()
    assert pool.run(faults.numpy_mean, [1.0, 2.0]) == 1.5
    with pytest.raises(isolate.NotPlain, match="numpy=True"):
        start().run(faults.numpy_double, array)


def test_exceptions_keep_their_type_if_it_is_built_in(start: Start) -> None:
    pool = start()
    with pytest.raises(ValueError, match="invalid literal") as caught:
        pool.run(int, "x")
    assert isinstance(caught.value.__cause__, isolate.RemoteTraceback)
    assert "in _run" in str(caught.value.__cause__)
    with pytest.raises(FileNotFoundError) as missing:
        pool.run(os.listdir, "/missing")
    assert missing.value.errno == 2
    with pytest.raises(UnicodeDecodeError):
        pool.run(bytes.decode, b"\xff")
    with pytest.raises(isolate.RemoteError, match=r"isolate_faults.Custom: \('one', 2\)") as own:
        pool.run(faults.raise_custom)
    assert own.value.type_name == "isolate_faults.Custom"
    assert "raise_custom" in str(own.value.__cause__)
    with pytest.raises(isolate.RemoteError, match="KeyboardInterrupt"):
        pool.run(faults.raise_builtin, "KeyboardInterrupt")
    assert sum(pool.status().deaths.values()) == 0


def test_errors_can_be_pickled() -> None:
    error = isolate.TimedOut("late", crash_class="timeout", signal=9, report=Path("/r"))
    back = pickle.loads(pickle.dumps(error))
    assert (str(back), back.crash_class, back.signal, back.report) == (
        "late",
        "timeout",
        9,
        Path("/r"),
    )
    assert pickle.loads(pickle.dumps(isolate.RemoteError("a.B", "c"))).type_name == "a.B"


def test_the_worker_follows_the_parent_to_its_place(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = start(spares=0)
    assert pool.run(faults.place) == (sys.path, os.getcwd(), sys.argv)
    (tmp_path / "isolate_added.py").write_text("def answer():\n    return 42\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    added = importlib.import_module("isolate_added")
    assert pool.run(added.answer) == 42
    assert pool.run(faults.place)[1] == str(tmp_path)
    assert pool.status().jobs == 3


def test_new_workers_import_in_advance_what_was_needed_before(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import time\nimported = time.monotonic()\ndef when():\n    return imported\n"
    (tmp_path / "isolate_timed.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    when = importlib.import_module("isolate_timed").when
    pool = start(max_jobs=1, spares=1)

    def are_idle() -> bool:
        return [worker.state for worker in pool.status().workers] == ["idle"] * 2

    eventually(are_idle)
    # Workers from before the first call know nothing of it, and are used up by one call each.
    before = {worker.pid for worker in pool.status().workers}
    while before & {worker.pid for worker in pool.status().workers}:
        pool.run(when)
    eventually(are_idle)
    called = time.monotonic()
    assert pool.run(when) < called


def test_output_is_forwarded_and_does_not_disturb(start: Start) -> None:
    lines: list[str] = []
    pool = start(output=lines.append)
    for _ in range(3):
        assert pool.run(faults.print_lines, "hello") == 5
    eventually(lambda: len(lines) == 9)
    assert lines == ["hello", "child hello", "hello"] * 3
    # More than a pipe holds.
    assert pool.run(faults.print_lines, "x" * 100_000) == 100_000


def test_output_to_a_logger(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        start(output=logging.getLogger("workers")).run(faults.print_lines, "hello")
        eventually(lambda: caplog.messages == ["hello", "child hello", "hello"])


def test_output_to_standard_error(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    start(output="stderr").run(faults.print_lines, "hello")
    seen = ""

    def all_there() -> bool:
        nonlocal seen
        seen += capsys.readouterr().err
        return seen == "hello\nchild hello\nhello\n"

    eventually(all_there)


# Concurrency.


def test_calls_run_at_the_same_time_up_to_the_number_of_workers(
    start: Start, tmp_path: Path
) -> None:
    pool = start(workers=2)
    futures = [pool.submit(faults.rendezvous, str(tmp_path), str(n), 2) for n in range(2)]
    assert [future.result() for future in futures] == [True, True]
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(pool.run(faults.echo, n)))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(20))
    assert len(pool.status().workers) <= 3


def test_map_keeps_the_order_and_reads_little_ahead(start: Start) -> None:
    pool = start(workers=2)
    taken: list[int] = []

    def source() -> Any:
        for number in range(50):
            taken.append(number)
            yield number

    results = pool.map(faults.echo, source())
    assert next(results) == 0
    assert len(taken) <= 6
    assert list(results) == list(range(1, 50))
    with pytest.raises(ValueError):
        list(pool.map(int, ["1", "x", "2"]))


def test_a_running_call_can_be_cancelled(start: Start, tmp_path: Path) -> None:
    pool = start()
    path = tmp_path / "started"
    future = pool.submit(faults.touch_and_sleep, str(path), 100)
    queued = pool.submit(faults.echo, 1)
    eventually(path.exists)
    assert future.running()
    assert future.cancel() and future.cancelled()
    assert queued.result() == 1
    wait([future], timeout=5)
    assert sum(pool.status().deaths.values()) == 0


def test_asyncio(start: Start, tmp_path: Path) -> None:
    pool = start(workers=2)

    async def main() -> None:
        results = await asyncio.gather(*[pool.run_async(faults.echo, n) for n in range(5)])
        assert results == list(range(5))
        with pytest.raises(isolate.WorkerDied):
            await pool.run_async(faults.segfault)
        path = tmp_path / "started"
        task = asyncio.ensure_future(pool.run_async(faults.touch_and_sleep, str(path), 100))
        while not path.exists():
            await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    eventually(lambda: all(worker.state != "busy" for worker in pool.status().workers))


def test_out_of_memory_is_retried_with_nothing_beside_it(start: Start, tmp_path: Path) -> None:
    pool = start(workers=2)
    started = tmp_path / "started"
    beside = pool.submit(faults.touch_and_sleep, str(started), 0.5)
    eventually(started.exists)
    assert pool.run(faults.allocate_until, str(tmp_path / "calls"), 2) == 2
    assert beside.done()


# Batches.


@pytest.mark.parametrize("deadly", ["segv", "abort", "memory"])
def test_the_deadly_item_of_a_batch_is_found(start: Start, deadly: str) -> None:
    pool = start(workers=2)
    items = [str(n) for n in range(20)]
    items[13] = deadly
    outcomes = pool.map_batches(faults.deadly_items, items, batch_size=10)
    assert [outcome.value for outcome in outcomes if outcome.ok] == [
        f"done {item}" for item in items if item != deadly
    ]
    error = outcomes[13].error
    assert isinstance(error, isolate.WorkerDied) and error.quarantined
    with pytest.raises(isolate.WorkerDied):
        outcomes[13].get()
    assert pool.status().breaker == "closed"
    # The next time it is left out at once.
    before = sum(pool.status().deaths.values())
    again = pool.map_batches(faults.deadly_items, items, batch_size=20)
    assert [outcome.ok for outcome in again] == [item != deadly for item in items]
    assert isinstance(again[13].error, isolate.Quarantined)
    assert sum(pool.status().deaths.values()) == before


def test_errors_and_hangs_in_batches(start: Start) -> None:
    pool = start(timeout=0.5)
    items = ["a", "error", "b"]
    outcomes = pool.map_batches(faults.deadly_items, items)
    assert [type(outcome.error) for outcome in outcomes] == [ValueError] * 3
    outcomes = pool.map_batches(faults.deadly_items, items, split_errors=True)
    assert [outcome.value for outcome in outcomes] == ["done a", None, "done b"]
    outcomes = pool.map_batches(faults.deadly_items, ["a", "hang"])
    assert [type(outcome.error) for outcome in outcomes] == [isolate.TimedOut] * 2
    outcomes = pool.map_batches(faults.deadly_items, ["a", "hang"], idempotent=True)
    assert outcomes[0].get() == "done a"
    assert isinstance(outcomes[1].error, isolate.TimedOut)
    (short,) = pool.map_batches(faults.short_answer, ["a"])
    assert isinstance(short.error, TypeError)
    assert pool.map_batches(faults.deadly_items, []) == []


# Workers.


def test_warm_up(start: Start) -> None:
    for function in (faults.warm_up, "isolate_faults:warm_up"):
        pool = start(warm_up=function)
        assert pool.run(faults.warmed_by) == [pool.run(faults.pid)]


def test_a_warm_up_that_fails(start: Start) -> None:
    pool = start(warm_up=faults.fail_to_warm_up)
    with pytest.raises(isolate.StartFailed, match="LookupError: no model") as caught:
        pool.run(faults.echo, 1)
    assert "fail_to_warm_up" in str(caught.value.__cause__)
    pool = start(warm_up=faults.segfault)
    with pytest.raises(isolate.BreakerOpen, match="start_failure") as opened:
        pool.run(faults.echo, 1)
    assert opened.value.retry_after > 0
    assert pool.status().breaker == "open"
    pool = start(warm_up=faults.hold_the_lock, start_timeout=0.1)
    eventually(lambda: pool.status().deaths["start_failure"] > 0)


def test_a_program_that_does_not_exist(start: Start) -> None:
    with pytest.raises(isolate.StartFailed, match="cannot start /missing/python"):
        start(executable="/missing/python").run(faults.echo, 1)


def test_the_pool_survives_trouble_of_its_own(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_descriptors(*_: object) -> None:
        raise OSError(24, "Too many open files")

    pool = start(spares=0, prestart=False)
    with monkeypatch.context() as broken:
        broken.setattr(_process, "spawn", no_descriptors)
        with pytest.raises(isolate.StartFailed, match="Too many open files"):
            pool.run(faults.echo, 1)
    assert pool.run(faults.echo, 1) == 1
    core = pool._core
    with monkeypatch.context() as broken:
        broken.setattr(Keeper, "_stop_surplus", no_descriptors)
        with core.lock:
            core.ensure_keeper().wake()
        eventually(lambda: "look after" in str(core.refusal))
        assert pool.run(faults.echo, 1) == 1, "there is a worker"
    with pytest.raises(isolate.WorkerDied):
        pool.run(faults.segfault)
    assert pool.run(faults.echo, 2) == 2


def test_many_deaths_open_the_breaker_and_a_trial_closes_it(start: Start, tmp_path: Path) -> None:
    from isolith.isolate._breaker import Breaker

    pool = start(retries=0)
    pool._core.breaker = Breaker(deaths=2, cooldown=1.0)
    for number in range(3):
        with pytest.raises(isolate.WorkerDied):
            pool.run(faults.segfault_until, str(tmp_path / str(number)), 5)
    with pytest.raises(isolate.BreakerOpen, match="crash, SIGSEGV") as caught:
        pool.run(faults.echo, 1)
    assert 0 < caught.value.retry_after <= 1.0
    time.sleep(caught.value.retry_after)
    assert pool.run(faults.echo, 1) == 1
    assert pool.status().breaker == "closed"


def test_max_jobs(start: Start) -> None:
    pool = start(max_jobs=2)
    pids = [pool.run(faults.pid) for _ in range(6)]
    assert len(set(pids)) == 3
    assert sum(pool.status().deaths.values()) == 0


def test_workers_stop_when_there_is_nothing_to_do(start: Start) -> None:
    pool = start(workers=2, idle_stop=0.2)
    assert pool.run(faults.echo, 1) == 1
    eventually(lambda: not pool.status().workers)
    assert pool.run(faults.echo, 2) == 2
    assert sum(pool.status().deaths.values()) == 0


def test_status(start: Start, tmp_path: Path) -> None:
    pool = start(workers=2, spares=0)
    path = tmp_path / "started"
    future = pool.submit(faults.touch_and_sleep, str(path), 100)
    eventually(path.exists)
    eventually(lambda: len(pool.status().workers) == 2)
    eventually(lambda: any(worker.state == "idle" for worker in pool.status().workers))
    status = pool.status()
    assert sorted(worker.state for worker in status.workers) == ["busy", "idle"]
    for worker in status.workers:
        assert worker.age > 0 and worker.jobs == 0 and (worker.rss or 0) > 1 << 20
    assert status.breaker == "closed" and status.waiting == 0
    assert status.to_dict()["deaths"]["crash"] == 0
    future.cancel()


# Closing.


def test_closing_lets_running_calls_finish_within_their_budget(
    start: Start, tmp_path: Path
) -> None:
    pool = start()
    path = tmp_path / "a"
    running = pool.submit(faults.touch_and_sleep, str(path), 0.3)
    queued = pool.submit(faults.echo, 1)
    eventually(path.exists)
    pool.close()
    assert running.result() == "done"
    with pytest.raises((CancelledError, isolate.PoolClosed)):
        queued.result()
    with pytest.raises(isolate.PoolClosed):
        pool.run(faults.echo, 1)
    assert pool.status().workers == ()

    pool = start()
    path = tmp_path / "b"
    running = pool.submit(faults.touch_and_sleep, str(path), 100)
    eventually(path.exists)
    pool.close(0.1)
    with pytest.raises(isolate.PoolClosed):
        running.result()
    assert pool.status().workers == ()


def test_a_forgotten_pool_stops_its_workers() -> None:
    pool = Pool(workers=1)
    pid = pool.run(faults.pid)
    keeper = pool._core.keeper
    del pool
    assert keeper is not None
    keeper.join(10)
    assert not Path(f"/proc/{pid}").exists()


def test_settings_are_checked() -> None:
    for settings in (
        {"workers": 0},
        {"spares": -1},
        {"timeout": 0},
        {"timeout": math.nan},
        {"memory": 5},
        {"max_jobs": 0},
        {"retries": -1},
        {"output": "stdout"},
    ):
        with pytest.raises(ValueError):
            Pool(prestart=False, **settings)
    with pytest.raises(ValueError, match="retries"):
        Pool(prestart=False).run(faults.echo, 1, retries=-1)
    with pytest.raises(isolate.NotSendable, match="module:function"):
        Pool(prestart=False, warm_up="module")


# The shared pools.


def test_isolate_itself(tmp_path: Path) -> None:
    from isolith.isolate import _run

    try:
        first = isolate(faults.pid)  # type: ignore[operator]
        assert isolate.run(faults.pid) == first, "the worker stays warm"
        assert isolate.run(faults.pid, memory=256 << 20) != first
        with pytest.raises(isolate.TimedOut):
            isolate.run(time.sleep, 100, timeout=0.2)
        with pytest.raises(isolate.OutOfMemory):
            isolate.run(faults.allocate, 1 << 30, memory=256 << 20)
        with pytest.raises(isolate.WorkerDied) as caught:
            isolate.run(faults.segfault)
        with pytest.raises(isolate.Quarantined):
            isolate.run(faults.segfault)
        assert isolate.clear_quarantine() == 2
        assert str(caught.value.report).startswith(
            str(tmp_path / "state" / "isolith" / "python-crashes")
        )
    finally:
        for pool in _run._pools.values():
            pool.close(0.0)
        _run._pools.clear()


def test_public_names() -> None:
    for name in isolate.__all__:
        assert getattr(isolate, name).__name__ if name != "OutputTarget" else True
        assert name in dir(isolate)
    with pytest.raises(AttributeError):
        isolate.nothing  # noqa: B018
