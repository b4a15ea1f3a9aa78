"""Helpers of tests."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

import isolith


def server_pid(client: isolith.Client) -> int:
    """The process of a handle's private server."""
    pid: int | None = client._transport.server.process_id  # type: ignore[union-attr]
    assert pid is not None
    return pid


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")


def processes_with(text: str) -> list[int]:
    """The processes that have a text in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in command and is_alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Whether a condition becomes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def run_python(program: str, *arguments: str, timeout: float = 30) -> str:
    """What a program prints, run by another interpreter that must succeed without any warning."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", done.stderr
    return done.stdout
