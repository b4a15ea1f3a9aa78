"""Starts worker processes, with `posix_spawn`: nothing is forked, so threads do no harm."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import threading
from contextlib import ExitStack

#: Held while descriptors are opened or closed, so that a fork sees them all or none.
descriptors_lock = threading.Lock()

#: Run by a new interpreter. The worker's modules are loaded under a name of their own, so that
#: neither the search path nor the rest of the package has a part in the start.
_BOOT = """\
import sys, types
package = types.ModuleType("isolith_worker")
package.__path__ = [sys.argv.pop(1)]
sys.modules["isolith_worker"] = package
if sys.path and not sys.path[0]: del sys.path[0]
from isolith_worker._worker import main
main()
"""

_MODULES = os.path.dirname(os.path.abspath(__file__))

_DEFAULT_SIGNALS = [
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGPIPE,
    signal.SIGCHLD,
]


def spawn(executable: str, environment: dict[str, str]) -> tuple[int, socket.socket, int, int]:
    """Starts a worker. Raises `OSError`.

    Returns its pid, the socket, the write end of the lifeline and the read end of the output.
    """
    with ExitStack() as on_error, ExitStack() as always:
        ours, theirs = socket.socketpair()
        on_error.callback(ours.close)
        always.callback(theirs.close)
        lifeline_read, lifeline = os.pipe()
        on_error.callback(os.close, lifeline)
        always.callback(os.close, lifeline_read)
        output_end, output = os.pipe()
        on_error.callback(os.close, output_end)
        always.callback(os.close, output)
        os.set_blocking(output_end, False)
        actions: list[tuple[object, ...]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        ends = [(output, 1), (output, 2), (theirs.fileno(), 3), (lifeline_read, 4)]
        for end, target in ends:
            # From a number that cannot be one of the targets.
            copy = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 16)
            always.callback(os.close, copy)
            actions.append((os.POSIX_SPAWN_DUP2, copy, target))
        flags: list[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
        pid = os.posix_spawn(
            executable,
            [executable, *flags, "-c", _BOOT, _MODULES],
            environment,
            file_actions=actions,
            setpgroup=0,
            setsigmask=[],
            setsigdef=_DEFAULT_SIGNALS,
        )
        on_error.pop_all()
    return pid, ours, lifeline, output_end
