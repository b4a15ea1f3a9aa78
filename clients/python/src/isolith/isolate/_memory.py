"""Reads what the kernel says about memory: a worker's size, and whether memory ran out."""

from __future__ import annotations

import os
import time
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(pid: int) -> int | None:
    """The resident memory of a process; `None` if it has ended or the kernel does not say."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE or None
    except (OSError, ValueError, IndexError):
        return None


class OomWatch:
    """Notices that the kernel has killed a process because memory ran out.

    The counter is that of the process's own cgroup if it has one, otherwise that of the machine.
    """

    def __init__(self, counters: list[Path] | None = None) -> None:
        self._counters = _counters() if counters is None else counters
        self._count = self._read()
        self._seen_at = -1e9

    def refresh(self) -> None:
        """Notes the counter. Called often enough that a kill is a recent one."""
        count = self._read()
        if count > self._count:
            self._seen_at = time.monotonic()
        self._count = count

    def recent(self, within: float = 2.0) -> bool:
        """Whether there was a kill during the last seconds."""
        self.refresh()
        return time.monotonic() - self._seen_at <= within

    def _read(self) -> int:
        for path in self._counters:
            try:
                text = path.read_text()
            except OSError:
                continue
            for line in text.splitlines():
                name, _, number = line.partition(" ")
                if name == "oom_kill" and number.strip().isdigit():
                    return int(number)
        return 0


def _counters() -> list[Path]:
    """The files with a counter, the most specific one first."""
    files: list[Path] = []
    root = Path("/sys/fs/cgroup")
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            # In a container the path may be that of the host, while the root is our own.
            files += [root / path.lstrip("/") / "memory.events", root / "memory.events"]
        elif "memory" in controllers.split(","):
            own = root / "memory"
            files += [own / path.lstrip("/") / "memory.oom_control", own / "memory.oom_control"]
    return [*files, Path("/proc/vmstat")]
