"""What happens to this process: forks and its exit."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from typing import Any, Protocol


class _HasIdle(Protocol):
    def close_idle(self) -> None: ...


# Rises in each forked child. What was made in another generation belongs to the parent.
generation = 0

# Held while something of the parent is given up.
lock = threading.Lock()

# Whether the interpreter is exiting; servers are stopped then.
is_exiting = False


# Clients whose idle connections are closed at exit.
_clients: weakref.WeakSet[Any] = weakref.WeakSet()


def close_at_exit(client: _HasIdle) -> None:
    """Closes the idle connections of a client that nobody has closed when the interpreter exits."""
    _clients.add(client)


def _in_child() -> None:
    global generation, lock
    generation += 1
    # A thread that the child does not have may hold the old one.
    lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)


def park_at_exit() -> None:
    """Never returns in a daemon thread of an interpreter that is exiting.

    Such a thread ends with the process. An exception would only print a traceback.
    """
    while is_exiting and threading.current_thread().daemon:
        time.sleep(3600)


@atexit.register
def _at_exit() -> None:
    global is_exiting
    is_exiting = True
    for client in list(_clients):
        client.close_idle()
