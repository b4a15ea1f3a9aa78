"""Servers that this process starts for itself, one for each store."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import threading
import time
from typing import Any, NamedTuple

from . import _lifecycle
from ._address import Address
from ._folder import PrivateFolder
from .errors import Closed, ConnectionLost, StartFailed, from_details

# How long a server may take to start, in seconds.
_START_TIMEOUT = 60

# How long a server that was asked to stop has for it, in seconds. No call is running then.
_STOP_TIMEOUT = 5

# How much of its log is shown if it cannot be started, in bytes.
_LOG_TAIL = 2000

# Variables that decide which store a server uses.
_VARIABLES = ("HOME", "ISOLITH_STORE", "ISOLITH_SECRET_FILE", "XDG_DATA_HOME", "XDG_STATE_HOME")


class ServerSpec(NamedTuple):
    """How a server is started. Handles with the same one share a server."""

    binary: str
    store: str | None
    allowed: tuple[str, ...]
    timeout: int
    folder: str
    variables: tuple[str | None, ...]

    @classmethod
    def here(
        cls, binary: str, store: str | None, allowed: tuple[str, ...], timeout: int
    ) -> ServerSpec:
        """For the current folder and environment."""
        variables = tuple(os.environ.get(name) for name in _VARIABLES)
        try:
            folder = os.getcwd()
        except FileNotFoundError:
            folder = "/"
        return cls(binary, store, allowed, timeout, folder, variables)

    def command(self, socket: str) -> list[str]:
        """The command line."""
        command = [self.binary, "serve", "--listen", f"unix:{socket}"]
        # However this process ends, the server does not outlive it.
        command += ["--exit-with", str(os.getpid())]
        command += ["--json", "--quiet", "--timeout", str(self.timeout)]
        for folder in self.allowed:
            command += ["--allow", folder]
        if self.store is not None:
            command += ["--store", self.store]
        return command

    def environment(self) -> dict[str, str]:
        """The environment: that of this process when the handle was opened."""
        environment = dict(os.environ)
        for name, value in zip(_VARIABLES, self.variables):
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
        # The socket is private: a token would only have to be passed on.
        environment.pop("ISOLITH_TOKEN", None)
        return environment


class LocalServer:
    """A server that is started when it is needed, and again when it has died.

    A forked child uses the server of its parent, which it never stops, and starts its own one when
    that is gone.
    """

    def __init__(self, spec: ServerSpec) -> None:
        self._spec = spec
        self._generation = _lifecycle.generation
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: PrivateFolder | None = None
        self._address: Address | None = None
        self._starts = 0
        self._is_stopped = False
        self.users = 0

    @property
    def is_stopped(self) -> bool:
        """Whether it was ended for good."""
        return self._is_stopped

    @property
    def running(self) -> Address | None:
        """Its address, if it was started and is not known to have died."""
        return self._address

    @property
    def process_id(self) -> int | None:
        """The process, if this process has started it."""
        process = self._process
        return None if process is None else process.pid

    def address(self, dead: Address | None = None) -> Address:
        """Its address. Starts it unless it runs at another address than the dead one.

        :raises StartFailed: if it cannot be started
        """
        if self._generation != _lifecycle.generation:
            self._leave_to_parent()
        address = self._address
        if address is not None and address != dead:
            return address
        with self._lock:
            if self._address is None or self._address == dead:
                if self._is_stopped:
                    raise Closed("the handle is closed")
                if _lifecycle.is_exiting:
                    _lifecycle.park_at_exit()
                    raise ConnectionLost("the server was stopped because the interpreter exits")
                self._address = None
                self._end_process(at_once=True)
                self._address = self._start()
            return self._address

    def stop(self) -> None:
        """Ends it for good, unless it belongs to the parent of this process."""
        if self._generation != _lifecycle.generation:
            self._leave_to_parent()
        # A thread that is starting the server may never finish: a daemon thread at exit.
        if self._lock.acquire(timeout=_STOP_TIMEOUT):
            try:
                self._is_stopped = True
                self._address = None
                self._end_process(at_once=False)
                if self._folder is not None:
                    self._folder.remove()
                    self._folder = None
            finally:
                self._lock.release()

    def _leave_to_parent(self) -> None:
        with _lifecycle.lock:
            if self._generation == _lifecycle.generation:
                return
            self._lock = threading.Lock()
            if self._process is not None:
                # It is no child of this process, which must not wait for it or warn about it.
                self._process.returncode = 0
                self._process = None
            if self._folder is not None:
                self._folder.forget()
                self._folder = None
            self._generation = _lifecycle.generation

    def _start(self) -> Address:
        self._starts += 1
        socket = self._private_folder().join(f"{self._starts}.sock")
        self._launch(self._spec.command(socket), self._spec.environment())
        return Address(path=socket)

    def _private_folder(self) -> PrivateFolder:
        if self._folder is None:
            self._folder = PrivateFolder()
        return self._folder

    def _launch(self, command: list[str], environment: dict[str, str]) -> dict[str, Any]:
        """Starts a server, and returns what it announces when it is ready."""
        log_path = self._private_folder().join("server.log")
        # What it prints goes to a file: a pipe would fill up, and a terminal is the user's.
        log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._spec.folder,
                env=environment,
                # Ctrl-C in the terminal is for this process, not for the server.
                start_new_session=True,
            )
        except OSError as error:
            raise StartFailed(f"cannot start {self._spec.binary}: {error}") from None
        finally:
            os.close(log)
        self._process = process
        try:
            with process.stdout as output:  # type: ignore[union-attr]
                line = _first_line(output.fileno())
            announced = _object_in(line)
            if "url" not in announced:
                raise _failure(self._spec.binary, process, announced, log_path)
            return announced
        except BaseException:
            self._end_process(at_once=True)
            raise

    def _end_process(self, at_once: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            if not at_once:
                # The first signal lets calls finish, but there are none; the second one does not
                # wait for anything. What was acknowledged is on disk.
                for _ in range(2):
                    process.send_signal(signal.SIGTERM)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_STOP_TIMEOUT / 2)
                        return
        finally:
            process.kill()
            process.wait()


def _first_line(output: int) -> bytes:
    """What the server prints when it is ready, or why it is not."""
    poll = select.poll()
    poll.register(output, select.POLLIN)
    deadline = time.monotonic() + _START_TIMEOUT
    text = b""
    while b"\n" not in text:
        left = deadline - time.monotonic()
        if left <= 0:
            raise StartFailed(f"the server was not ready after {_START_TIMEOUT} seconds")
        if poll.poll(left * 1000):
            part = os.read(output, 65536)
            if not part:
                break
            text += part
    return text


def _object_in(line: bytes) -> dict[str, Any]:
    """The JSON object that a server printed; empty if it is none."""
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _failure(
    binary: str, process: subprocess.Popen[bytes], announced: dict[str, Any], log_path: str
) -> Exception:
    """Why a server has ended instead of starting."""
    details = announced.get("error")
    if isinstance(details, dict):
        return from_details(details)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1)
    with open(log_path, "rb") as log:
        tail = log.read()[-_LOG_TAIL:].decode("utf-8", "replace").strip()
    code = process.returncode
    reason = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return StartFailed(f"{binary} ended with {reason} instead of starting: {tail or 'no output'}")


# Reentrant: a handle that is lost is released wherever the garbage collector happens to run.
_registry_lock = threading.RLock()
_registry_generation = 0
_shared: dict[ServerSpec, LocalServer] = {}


def lease(spec: ServerSpec) -> LocalServer:
    """The server for a spec, shared in this process. Each lease has to be released."""
    with _registry():
        while True:
            server = _shared.get(spec)
            if server is None:
                server = _shared[spec] = LocalServer(spec)
            server.users += 1
            if not server.is_stopped and _shared.get(spec) is server:
                return server


def release(server: LocalServer) -> None:
    """Gives up a lease. Stops the server if it was the last one."""
    with _registry():
        server.users -= 1
        if server.users > 0:
            return
        if _shared.get(server._spec) is server:
            del _shared[server._spec]
    server.stop()


def _registry() -> threading.RLock:
    global _registry_lock, _registry_generation
    if _registry_generation != _lifecycle.generation:
        with _lifecycle.lock:
            if _registry_generation != _lifecycle.generation:
                # A thread that this process does not have may hold the lock of its parent.
                _registry_lock = threading.RLock()
                _registry_generation = _lifecycle.generation
    return _registry_lock


@atexit.register
def _stop_all() -> None:
    _lifecycle.is_exiting = True
    for server in list(_shared.values()):
        server.stop()
