"""One call on its way through a pool, and the death of a worker."""

from __future__ import annotations

import hashlib
import itertools
import os
import pickle
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _functions
from ._classify import DeathClass, End
from ._retry import Action, Record, Terms
from ._wire import NOTES
from .errors import NotSendable, TooLarge

if TYPE_CHECKING:
    from ._process import Process

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Death:
    """The death of a worker."""

    crash_class: DeathClass
    end: End
    pid: int
    report: Path | None
    action: Action
    output: tuple[str, ...]


class Job:
    """A call. Its pool's lock guards everything that changes."""

    def __init__(
        self, call: bytes, name: str, terms: Terms, timeout: float, *, numpy: bool = False
    ) -> None:
        self.number = next(_numbers)
        self.call = call
        #: The function's module and qualified name.
        self.name = name
        self.terms = terms
        self.timeout = timeout
        self.numpy = numpy
        self.record = Record()
        self.deaths: list[Death] = []
        self.attempts = 0
        #: It killed a worker, so the next one must be fresh.
        self.suspect = False
        #: It ran out of memory, so nothing else may run beside it.
        self.alone = False
        self.cancelled = False
        self.worker: Process | None = None
        #: Why it will not get a worker.
        self.failure: BaseException | None = None
        #: Released when `worker` or `failure` is set; `None` if the job does not wait.
        self.gate: threading.Lock | None = None
        #: The traceback of an exception that is treated as a death.
        self.traceback: str | None = None

    def input_hash(self) -> str:
        """Identifies function and arguments."""
        return hashlib.sha256(self.call).hexdigest()

    def parts(self, worker: Process) -> list[bytes]:
        """The body of the frame that starts the job on `worker`."""
        known_path, known_cwd = worker.place
        cwd = working_folder()
        if sys.path == known_path and cwd == known_cwd and not self.numpy:
            return [_NO_NOTES, self.call]
        path = search_path()
        notes = {
            "numpy": self.numpy,
            "path": None if path == known_path else path,
            "cwd": None if cwd == known_cwd else cwd,
        }
        worker.place = (path, cwd)
        pickled = pickle.dumps(notes)
        return [NOTES.pack(len(pickled)) + pickled, self.call]


def encode_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], limit: int
) -> tuple[bytes, str]:
    """Returns the pickled call and its name. Raises `NotSendable` and `TooLarge`."""
    while isinstance(function, partial):
        args = (*function.args, *args)
        kwargs = {**function.keywords, **kwargs}
        function = function.func
    try:
        module, qualname = _functions.reference(function)
    except _functions.Refused as error:
        raise NotSendable(str(error)) from None
    name = f"{module}:{qualname}"
    try:
        call = pickle.dumps((module, qualname, args, kwargs), protocol=5)
    except Exception as error:
        raise NotSendable(f"cannot send the arguments of {name}: {error}") from error
    if len(call) > limit:
        raise TooLarge(f"arguments of {len(call)} bytes exceed the limit of {limit}")
    return call, name


_NO_NOTES = NOTES.pack(0)


def working_folder() -> str | None:
    """The working folder of this process, if it still exists."""
    try:
        return os.getcwd()
    except OSError:
        return None


def search_path() -> list[str]:
    """The module search path of this process."""
    return [entry for entry in sys.path if isinstance(entry, str)]
