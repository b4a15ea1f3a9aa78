"""Classifies the deaths of workers.

One pure function from what was observed to a class. The class decides what happens to the job,
so the tests cover the whole table.
"""

from __future__ import annotations

import enum
import signal
from dataclasses import dataclass


class DeathClass(enum.Enum):
    """Why a worker ended without being told to. The values are the names used in JSON."""

    CRASH = "crash"
    PANIC = "panic"
    OUT_OF_MEMORY = "out_of_memory"
    KILLED = "killed"
    TIMEOUT = "timeout"
    PROTOCOL = "protocol"
    EXIT = "exit"
    START_FAILURE = "start_failure"

    @property
    def blames_job(self) -> bool:
        """Whether the running job is to blame."""
        return self not in (DeathClass.KILLED, DeathClass.START_FAILURE)


class Phase(enum.Enum):
    """What a worker was doing when it ended."""

    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    STOPPING = "stopping"


class KillReason(enum.Enum):
    """Why the pool killed a worker."""

    DEADLINE = "deadline"
    STOP_GRACE = "stop_grace"
    VIOLATION = "violation"
    CANCELLED = "cancelled"
    SHUTDOWN = "shutdown"
    #: The job itself reported a MemoryError or a panic; the worker is not used again.
    CONDEMNED = "condemned"


@dataclass(frozen=True)
class End:
    """How a worker ended: at most one is set, and none if the status was lost."""

    exit_code: int | None = None
    signal: int | None = None
    #: What the job reported, after which the pool ended the worker.
    reported: str | None = None

    def __str__(self) -> str:
        if self.reported is not None:
            return self.reported
        if self.exit_code is not None:
            return f"exit code {self.exit_code}"
        if self.signal is None:
            return "unknown end"
        try:
            return signal.Signals(self.signal).name
        except ValueError:
            return f"signal {self.signal}"


@dataclass(frozen=True)
class Circumstances:
    """What is known about an end besides the exit status."""

    phase: Phase = Phase.BUSY
    #: A native extension panicked (PyO3's `PanicException`).
    panicked: bool = False
    #: The function raised `MemoryError`.
    memory_error: bool = False
    #: An invalid frame had arrived, or the socket was closed in the middle of a job.
    violated: bool = False
    killed: KillReason | None = None
    #: The output shows that an allocator was refused memory.
    allocator_refused: bool = False
    #: The kernel had recently killed a process because memory ran out.
    oom_kill: bool = False


def classify(end: End, seen: Circumstances) -> DeathClass | None:
    """Returns the class of a death; `None` for an orderly end."""
    if seen.killed in (KillReason.SHUTDOWN, KillReason.CANCELLED):
        return None
    if seen.phase is Phase.STARTING:
        return DeathClass.START_FAILURE
    if seen.phase is Phase.STOPPING and end.exit_code == 0:
        return None
    if seen.killed is KillReason.CONDEMNED:
        return DeathClass.PANIC if seen.panicked else DeathClass.OUT_OF_MEMORY
    if end.signal is not None:
        return _classify_signal(end.signal, seen)
    if end.exit_code is not None:
        return _classify_exit(end.exit_code, seen)
    return DeathClass.PROTOCOL if seen.violated else DeathClass.KILLED


def _classify_exit(code: int, seen: Circumstances) -> DeathClass:
    if code == 101:
        return DeathClass.PANIC
    if seen.violated or (code == 0 and seen.phase is Phase.BUSY):
        return DeathClass.PROTOCOL
    return DeathClass.EXIT


def _classify_signal(number: int, seen: Circumstances) -> DeathClass:
    if number == dump_signal() and seen.killed is KillReason.DEADLINE:
        # The job had removed the handler that prints the traceback.
        return DeathClass.TIMEOUT
    if number == signal.SIGKILL:
        if seen.killed in (KillReason.DEADLINE, KillReason.STOP_GRACE):
            return DeathClass.TIMEOUT
        if seen.killed is KillReason.VIOLATION:
            return DeathClass.PROTOCOL
        if seen.oom_kill:
            return DeathClass.OUT_OF_MEMORY
        return DeathClass.PROTOCOL if seen.violated else DeathClass.KILLED
    if number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        return DeathClass.KILLED
    if number == signal.SIGABRT and seen.allocator_refused:
        return DeathClass.OUT_OF_MEMORY
    return DeathClass.CRASH


def dump_signal() -> int:
    """The signal that makes a worker print the tracebacks of its threads."""
    highest: int = getattr(signal, "SIGRTMAX", signal.SIGUSR2)
    return int(highest) - 1 if hasattr(signal, "SIGRTMAX") else int(highest)


def is_allocator_refusal(line: str) -> bool:
    """Whether a line of output is a runtime's message about a failed allocation."""
    rust = line.startswith("memory allocation of ") and " bytes failed" in line
    return rust or "std::bad_alloc" in line
