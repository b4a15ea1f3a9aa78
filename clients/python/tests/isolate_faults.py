"""Functions that misbehave, for workers to run."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def segfault() -> None:
    ctypes.string_at(0)


def abort() -> None:
    os.abort()


def bus_error() -> None:
    with tempfile.TemporaryFile() as file:
        file.truncate(1 << 16)
        area = mmap.mmap(file.fileno(), 1 << 16)
        file.truncate(0)
        area[4096]


def stack_overflow() -> None:
    """The C library's parser of regular expressions is recursive."""
    pattern = b"(" * 2_000_000 + b")" * 2_000_000
    ctypes.CDLL(None).regcomp(ctypes.create_string_buffer(1024), pattern, 1)


def illegal_instruction() -> None:
    os.kill(os.getpid(), signal.SIGILL)


def exit_at_once(code: int) -> None:
    os._exit(code)


def sys_exit(status: Any) -> None:
    sys.exit(status)


def allocate(size: int) -> int:
    return len(bytearray(size))


def refused_allocation(line: str) -> None:
    os.write(2, line.encode() + b"\n")
    os.abort()


def hold_the_lock(seconds: int = 1000) -> None:
    """Sleeps in C without releasing the interpreter lock."""
    ctypes.PyDLL(None).sleep(seconds)


def loop_in_c() -> None:
    """Backtracks practically for ever, holding the interpreter lock."""
    re.match(r"(a+)+$", "a" * 60 + "b")


def stop_process() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


class PanicException(BaseException):
    """As raised by native extensions that are written in Rust."""


def panic() -> None:
    raise PanicException("index out of bounds")


def protocol_socket() -> int:
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if int(name) >= 100 and target.startswith("socket:"):
            return int(name)
    raise LookupError


def garbage(data: bytes) -> None:
    os.write(protocol_socket(), data)
    time.sleep(100)


def loose_result() -> None:
    """Answers in the name of another job."""
    from isolith_worker import _codec, _wire  # type: ignore[import-not-found]

    parts = _codec.encode("forged")
    os.writev(protocol_socket(), [_wire.pack(_wire.RESULT, 1 << 60, parts, whole=True), *parts])
    time.sleep(100)


def partial_frame() -> None:
    os.write(protocol_socket(), b"\x89iso\x05\x01")
    os._exit(0)


def close_socket() -> None:
    os.close(protocol_socket())
    time.sleep(100)


def killed_by_the_kernel(counter: str) -> None:
    """Looks like a kill because memory ran out."""
    Path(counter).write_text("oom_kill 1\n")
    os.kill(os.getpid(), signal.SIGKILL)


def count_up(path: str) -> int:
    """Counts the calls in a file."""
    with open(path, "a") as file:
        file.write("x")
    return os.path.getsize(path)


def signal_until(path: str, calls: int, number: int) -> int:
    """Ends itself by a signal, except in the last of so many calls."""
    count = count_up(path)
    if count < calls:
        os.kill(os.getpid(), number)
        time.sleep(100)
    return count


def segfault_until(path: str, calls: int) -> int:
    count = count_up(path)
    if count < calls:
        segfault()
    return count


def allocate_until(path: str, calls: int) -> int:
    count = count_up(path)
    if count < calls:
        raise MemoryError
    return count


def sleep_until(path: str, calls: int) -> int:
    count = count_up(path)
    if count < calls:
        time.sleep(100)
    return count


def echo(value: Any) -> Any:
    return value


def pid() -> int:
    return os.getpid()


def print_lines(text: str) -> int:
    print(text)
    os.system(f"echo child {text}")
    os.write(1, text.encode() + b"\n")
    return len(text)


def touch_and_sleep(path: str, seconds: float) -> str:
    """Announces that it runs."""
    Path(path).touch()
    time.sleep(seconds)
    return "done"


def wait_for(path: str) -> str:
    """Returns when the file exists."""
    while not os.path.exists(path):
        time.sleep(0.002)
    return "done"


def rendezvous(folder: str, name: str, number: int) -> bool:
    """Returns when so many of these functions run at the same time."""
    Path(folder, name).touch()
    while len(os.listdir(folder)) < number:
        time.sleep(0.001)
    return True


def grandchild_holds_output() -> None:
    """Leaves a process behind that keeps every descriptor, and dies."""
    if os.fork() == 0:
        time.sleep(100)
    segfault()


def leave_a_child(path: str) -> None:
    child = subprocess.Popen(["sleep", "100"])
    Path(path).write_text(str(child.pid))
    segfault()


def fork_and_return() -> int:
    """The child comes back from the function as well; only the parent may answer."""
    return 1 if os.fork() == 0 else 2


class Custom(Exception):
    pass


def raise_custom() -> None:
    raise Custom("one", 2)


def raise_builtin(name: str, *args: Any) -> None:
    raise __builtins__[name](*args)  # type: ignore[index]


def unsendable() -> object:
    return {"inner": [object()]}


def numpy_mean(values: list[float]) -> Any:
    import numpy

    return numpy.asarray(values).mean()


def numpy_double(values: Any) -> Any:
    return values * 2


def deadly_items(items: list[Any]) -> list[Any]:
    """Kills its worker if the list contains "segv", "abort" or "memory"."""
    if "segv" in items:
        segfault()
    if "abort" in items:
        abort()
    if "memory" in items:
        raise MemoryError
    if "hang" in items:
        time.sleep(100)
    if "error" in items:
        raise ValueError("bad item")
    return [f"done {item}" for item in items]


def short_answer(items: list[Any]) -> list[Any]:
    return items[1:]


warmed: list[int] = []


def warm_up() -> None:
    warmed.append(os.getpid())


def warmed_by() -> list[int]:
    return warmed


def fail_to_warm_up() -> None:
    raise LookupError("no model")


def place() -> tuple[list[str], str, list[str]]:
    return sys.path, os.getcwd(), sys.argv


def limits() -> dict[str, Any]:
    import resource

    return {
        "data": resource.getrlimit(resource.RLIMIT_DATA)[0],
        "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
        "group": os.getpgrp() == os.getpid(),
        "oom": int(Path("/proc/self/oom_score_adj").read_text()),
        "descriptors": [int(name) for name in os.listdir("/proc/self/fd")],
    }
