"""Real faults in real workers: how each is classified, and what the caller gets."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import isolate_faults as faults
import isolith.isolate as isolate
from isolate_support import alive, eventually
from isolith.isolate import _process, _reports
from isolith.isolate._memory import OomWatch
from isolith.isolate.pool import Pool

Start = Callable[..., Pool]

MEMORY = 256 << 20


@pytest.mark.parametrize(
    ("function", "args", "crash_class", "end"),
    [
        (faults.segfault, (), "crash", signal.SIGSEGV),
        (faults.abort, (), "crash", signal.SIGABRT),
        (faults.bus_error, (), "crash", signal.SIGBUS),
        (faults.illegal_instruction, (), "crash", signal.SIGILL),
        (faults.stack_overflow, (), "crash", signal.SIGSEGV),
        (faults.exit_at_once, (3,), "exit", 3),
        (faults.exit_at_once, (0,), "protocol", 0),
        (faults.exit_at_once, (101,), "panic", 101),
        (faults.sys_exit, (4,), "exit", 4),
        (faults.sys_exit, (None,), "protocol", 0),
        (faults.sys_exit, ("message",), "exit", 1),
        (faults.panic, (), "panic", "panic"),
        (faults.allocate, (1 << 30,), "out_of_memory", "MemoryError"),
        (faults.allocate, (1 << 62,), "out_of_memory", "MemoryError"),
        (
            faults.refused_allocation,
            ("memory allocation of 5 bytes failed",),
            "out_of_memory",
            signal.SIGABRT,
        ),
        (faults.refused_allocation, ("std::bad_alloc",), "out_of_memory", signal.SIGABRT),
        (faults.partial_frame, (), "protocol", 0),
        (faults.loose_result, (), "protocol", signal.SIGKILL),
        (faults.garbage, (b"garbage" * 100,), "protocol", signal.SIGKILL),
        (faults.garbage, (b"\x89iso" + b"\xff" * 100,), "protocol", signal.SIGKILL),
        (faults.grandchild_holds_output, (), "crash", signal.SIGSEGV),
    ],
)
def test_a_fault_twice(
    start: Start,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    crash_class: str,
    end: int | str,
    tmp_path: Path,
) -> None:
    pool = start(memory=MEMORY)
    with pytest.raises(isolate.WorkerDied) as caught:
        pool.run(function, *args)
    error = caught.value
    assert error.crash_class == crash_class
    if isinstance(end, str):
        assert end in str(error)
        assert error.signal is None and error.exit_code is None
    else:
        assert end in (error.signal, error.exit_code)
        assert (error.signal is None) != (error.exit_code is None)
    assert error.deaths == 2 and error.quarantined
    assert isinstance(error, MemoryError) == (crash_class == "out_of_memory")

    # Both deaths have a report, and the first one led to a retry.
    reports = [json.loads(path.read_text()) for path in sorted((tmp_path / "crashes").iterdir())]
    assert [report["class"] for report in reports] == [crash_class] * 2
    retry = "retried_alone" if crash_class == "out_of_memory" else "retried"
    assert [report["action"] for report in reports] == [retry, "quarantined"]
    assert error.report is not None
    report = json.loads(error.report.read_text())
    assert report == reports[1]
    assert report["signal"] == error.signal and report["exit_code"] == error.exit_code
    assert report["job"]["kind"] == f"isolate_faults:{function.__name__}"
    assert report["job"]["attempt"] == 1
    assert report["jobs_done"] == 0 and report["pid"] > 0 and report["age_ms"] > 0

    # The call is refused without being tried, and others are not affected.
    with pytest.raises(isolate.Quarantined) as refused:
        pool.run(function, *args)
    assert refused.value.input_hash == report["job"]["input_hash"]
    assert pool.run(faults.echo, 5) == 5
    assert pool.status().deaths[crash_class] == 2
    assert pool.clear_quarantine(refused.value.input_hash) == 1
    assert pool.status().quarantined == ()


def test_a_crash_report_holds_the_python_traceback(start: Start) -> None:
    with pytest.raises(isolate.WorkerDied) as caught:
        start().run(faults.segfault)
    text = "\n".join(caught.value.output)
    assert "Segmentation fault" in text
    assert "in segfault" in text
    assert text in "\n".join(json.loads(Path(str(caught.value.report)).read_text())["output"])


@pytest.mark.parametrize(
    ("function", "args", "shown"),
    [
        (faults.touch_and_sleep, ("/dev/null", 100), "in touch_and_sleep"),
        (faults.hold_the_lock, (), "in hold_the_lock"),
        (faults.loop_in_c, (), "in loop_in_c"),
        (faults.stop_process, (), None),
    ],
)
def test_a_hang_is_ended_and_its_place_reported(
    start: Start, function: Callable[..., Any], args: tuple[Any, ...], shown: str | None
) -> None:
    pool = start(timeout=0.3)
    with pytest.raises(isolate.TimedOut, match=r"did not return within 0\.3 s") as caught:
        pool.run(function, *args)
    error = caught.value
    assert isinstance(error, TimeoutError)
    assert (error.crash_class, error.signal) == ("timeout", signal.SIGKILL)
    assert error.deaths == 1 and not error.quarantined, "it may have taken effect"
    assert shown is None or shown in "\n".join(error.output)
    assert json.loads(Path(str(error.report)).read_text())["rss_bytes"] > 1 << 20
    assert pool.run(faults.echo, 5) == 5


def test_a_timeout_is_retried_only_if_that_is_safe(start: Start, tmp_path: Path) -> None:
    pool = start(timeout=0.3)
    with pytest.raises(isolate.TimedOut):
        pool.run(faults.sleep_until, str(tmp_path / "a"), 2)
    assert pool.run(faults.sleep_until, str(tmp_path / "b"), 2, idempotent=True) == 2


@pytest.mark.parametrize("function", [faults.segfault_until, faults.allocate_until])
def test_the_second_attempt_succeeds(
    start: Start, tmp_path: Path, function: Callable[..., int]
) -> None:
    pool = start(workers=2)
    assert pool.run(function, str(tmp_path / "calls"), 2) == 2
    assert sum(pool.status().deaths.values()) == 1
    assert pool.status().quarantined == ()


def test_retries_are_a_setting(start: Start, tmp_path: Path) -> None:
    pool = start()
    with pytest.raises(isolate.WorkerDied) as caught:
        pool.run(faults.segfault_until, str(tmp_path / "a"), 2, retries=0)
    assert caught.value.deaths == 1 and not caught.value.quarantined
    assert pool.run(faults.segfault_until, str(tmp_path / "b"), 3, retries=2) == 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_being_killed_from_outside_is_not_held_against_a_job(
    start: Start, tmp_path: Path, number: int
) -> None:
    pool = start(retries=0)
    assert pool.run(faults.signal_until, str(tmp_path / "calls"), 4, int(number)) == 4
    assert pool.status().deaths["killed"] == 3
    assert pool.status().breaker == "closed"


def test_a_worker_killed_while_idle_is_replaced(start: Start) -> None:
    pool = start(spares=0)
    first = pool.run(faults.pid)
    os.kill(first, signal.SIGKILL)
    assert pool.run(faults.pid) != first
    deaths = pool.status().deaths
    assert deaths["killed"] == 1 and sum(deaths.values()) == 1


def test_a_closed_socket_is_a_violation(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_process.Process.reap, "__defaults__", (0.2,))
    with pytest.raises(isolate.WorkerDied) as caught:
        start().run(faults.close_socket, retries=0)
    assert caught.value.crash_class == "protocol"
    report = json.loads(Path(str(caught.value.report)).read_text())
    assert report["violation"] == "closed its socket"


def test_a_child_that_comes_back_from_the_function_cannot_answer(start: Start) -> None:
    pool = start()
    for _ in range(20):
        assert pool.run(faults.fork_and_return) == 2
    assert sum(pool.status().deaths.values()) == 0


def test_what_a_job_started_dies_with_its_worker(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "child"
    with pytest.raises(isolate.WorkerDied):
        start().run(faults.leave_a_child, str(path), retries=0)
    eventually(lambda: not alive(int(path.read_text())))


def test_arguments_that_do_not_fit_into_the_memory_limit(start: Start) -> None:
    with pytest.raises(isolate.OutOfMemory):
        start(memory=64 << 20).run(len, b"x" * (100 << 20))


def test_a_worker_sets_its_limits(start: Start) -> None:
    limits = start(memory=MEMORY).run(faults.limits)
    assert limits["data"] == MEMORY
    assert limits["core"] == 0
    assert limits["group"]
    assert limits["oom"] >= 500
    assert len(limits["descriptors"]) <= 6, "nothing is inherited"


def test_evidence_that_memory_ran_out(tmp_path: Path) -> None:
    counter = tmp_path / "memory.events"
    counter.write_text("low 0\noom 3\noom_kill 3\n")
    watch = OomWatch([tmp_path / "missing", counter])
    assert not watch.recent()
    counter.write_text("low 0\noom 4\noom_kill 4\n")
    assert watch.recent()
    assert not watch.recent(within=-1)
    assert not OomWatch([tmp_path / "missing"]).recent()


def test_a_kill_for_lack_of_memory(start: Start, tmp_path: Path) -> None:
    counter = tmp_path / "memory.events"
    counter.write_text("oom_kill 0\n")
    pool = start()
    pool._core.oom = OomWatch([counter])
    with pytest.raises(isolate.OutOfMemory) as caught:
        pool.run(faults.killed_by_the_kernel, str(counter), retries=0)
    assert caught.value.signal == signal.SIGKILL


def test_the_newest_reports_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    for number in range(5):
        _reports.write(folder, {"unix_ms": number}, keep=3)
    (folder / "package.json").write_text("{}")
    last = _reports.write(folder, {"unix_ms": 9}, keep=3)
    kept = sorted(path.name for path in folder.iterdir())
    assert [name[:13] for name in kept[:3]] == [f"{n:013}" for n in (3, 4, 9)]
    assert kept[3:] == ["package.json"]
    assert last is not None and last.stat().st_mode & 0o777 == 0o600
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert _reports.write(link, {"unix_ms": 10}) is None


def test_a_folder_that_cannot_be_written_costs_only_the_report(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(isolate.WorkerDied) as caught:
        start(crash_folder=tmp_path / "file" / "crashes").run(faults.segfault)
    assert caught.value.report is None
