"""Collects what a worker prints."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from ._classify import is_allocator_refusal

KEPT_LINES = 40
LONGEST_LINE = 2000
_CHUNK = 64 << 10
#: More than a pipe holds. A process that left the worker's group may go on writing for ever.
_MOST_CHUNKS = 32


class Output:
    """The last lines that a worker printed, read from a non-blocking pipe.

    Any thread may call `read`. `forward` gets each line; its exceptions are ignored, because a
    broken logger must not end a pool.
    """

    def __init__(self, descriptor: int, forward: Callable[[str], None] | None) -> None:
        self._descriptor = descriptor
        self._forward = forward
        self._lock = threading.Lock()
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._rest = b""
        self.ended = False
        #: A line said that an allocator was refused memory.
        self.allocator_refused = False

    def read(self) -> bool:
        """Reads what is there without waiting. Returns whether there was anything."""
        with self._lock:
            found = False
            for _ in range(_MOST_CHUNKS):
                if self.ended:
                    break
                try:
                    data = os.read(self._descriptor, _CHUNK)
                except BlockingIOError:
                    break
                except OSError:
                    data = b""
                if not data:
                    self.ended = True
                    break
                found = True
                self._feed(data)
                if len(data) < _CHUNK:
                    break
            return found

    def finish(self) -> tuple[str, ...]:
        """Reads the rest and returns the last lines. The worker must have ended."""
        self.read()
        with self._lock:
            if self._rest:
                self._line(self._rest)
                self._rest = b""
            return tuple(self._lines)

    def _feed(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line)
        # A worker that never ends its line must not fill the memory.
        while len(rest) > LONGEST_LINE:
            self._line(rest[:LONGEST_LINE])
            rest = rest[LONGEST_LINE:]
        self._rest = rest

    def _line(self, data: bytes) -> None:
        line = data[:LONGEST_LINE].decode("utf-8", "replace").rstrip("\r")
        self._lines.append(line)
        if is_allocator_refusal(line):
            self.allocator_refused = True
        if self._forward is not None:
            with suppress(Exception):
                self._forward(line)
