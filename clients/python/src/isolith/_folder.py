"""Private folders for the sockets of servers.

A folder is locked as long as the process that made it, or a forked child of it, is alive. Folders
of processes that were killed are removed when the next one is made.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile

from .errors import StartFailed

_PREFIX = "isolith-py-"

# Maximum length of the path of a socket, in bytes.
_MAX_SOCKET_PATH = 107


class PrivateFolder:
    """A new folder that only this user can enter."""

    def __init__(self) -> None:
        base = _base()
        _remove_abandoned(base)
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=base)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def join(self, name: str) -> str:
        """The path of a file in it."""
        return os.path.join(self.path, name)

    def remove(self) -> None:
        """Deletes it with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.forget()

    def forget(self) -> None:
        """Leaves it to another process."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _base() -> str:
    """The folder for temporary files, unless its path is too long for a socket."""
    for base in (tempfile.gettempdir(), "/tmp", "/dev/shm"):
        # The name of the folder and that of the socket, with room for both.
        length = len(os.fsencode(base)) + len(_PREFIX) + 24
        if length <= _MAX_SOCKET_PATH and os.access(base, os.W_OK | os.X_OK):
            return base
    raise StartFailed(
        "there is no folder for temporary files whose path is short enough for a socket",
        hint="set TMPDIR to a short path, such as /tmp",
    )


def _remove_abandoned(base: str) -> None:
    with contextlib.suppress(OSError):
        names = [name for name in os.listdir(base) if name.startswith(_PREFIX)]
        for name in names:
            with contextlib.suppress(OSError):
                _remove_if_abandoned(os.path.join(base, name))


def _remove_if_abandoned(path: str) -> None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(path, flags)
    try:
        state = os.fstat(folder)
        if state.st_uid != os.getuid() or stat.S_IMODE(state.st_mode) != 0o700:
            return
        # One that was made a moment ago may not be locked yet.
        if _age(state) < 10:
            return
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(folder)


def _age(state: os.stat_result) -> float:
    import time

    return time.time() - state.st_mtime
