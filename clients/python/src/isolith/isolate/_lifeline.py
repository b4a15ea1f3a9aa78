"""Ends a worker, with everything it started, when its parent is gone.

The parent holds the write end of a pipe and never writes to it. On Linux the kernel itself
sends SIGKILL to the worker's process group when that end is closed, whatever the worker is
doing: no thread of the worker has to run, so it works while C code holds the interpreter lock.
Elsewhere a thread does it, which needs the lock.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal


def arm(read_end: int) -> None:
    """Ties the calling process group to the pipe. The caller must lead its group."""
    try:
        fcntl.fcntl(read_end, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(read_end, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(read_end, fcntl.F_GETFL)
        fcntl.fcntl(read_end, fcntl.F_SETFL, flags | os.O_ASYNC)
    except (AttributeError, OSError):
        _watch_in_thread(read_end)
        return
    # The parent may have gone before the signal was requested.
    if _is_cut(read_end):
        _end()


def _is_cut(read_end: int) -> bool:
    poll = select.poll()
    poll.register(read_end, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(0))


def _watch_in_thread(read_end: int) -> None:
    import threading

    def watch() -> None:
        os.read(read_end, 1)
        _end()

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


def _end() -> None:
    os.killpg(os.getpgrp(), signal.SIGKILL)
