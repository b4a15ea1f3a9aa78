"""Whole programs: no worker outlives its parent, and no parent hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from isolate_support import alive

Script = Callable[[str], "list[str]"]


def gone_within(pids: list[int], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(map(alive, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(command: list[str], code: int = 0) -> tuple[str, str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


STUCK = """
import sys, time
import isolate_faults as faults
from isolith.isolate import Pool
pool = Pool(workers=3)
started = [sys.argv[1] + str(n) for n in range(2)]
futures = [pool.submit(faults.{function}, *{args}) for n in range(2)]
while sum(w.state == "busy" for w in pool.status().workers) < 2 or not all(
    w.state in ("busy", "idle") for w in pool.status().workers
):
    time.sleep(0.01)
print(*[w.pid for w in pool.status().workers], flush=True)
time.sleep(100)
"""


@pytest.mark.parametrize(
    ("function", "args"),
    [("hold_the_lock", "()"), ("loop_in_c", "()"), ("stop_process", "()"), ("echo", "(n,)")],
)
def test_no_worker_outlives_a_killed_parent(
    script: Script, tmp_path: Path, function: str, args: str
) -> None:
    """Also while C code holds the interpreter lock, and while the worker is stopped."""
    text = STUCK.format(function=function, args=args)
    if function == "echo":
        text = text.replace('"busy" for', '"idle" for')
    with start([*script(text), str(tmp_path)]) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) >= 3 and all(map(alive, pids))
        parent.kill()
        parent.wait()
        assert gone_within(pids, 1.0)


def test_a_worker_that_is_starting_does_not_outlive_its_parent(script: Script) -> None:
    text = """
import time
from isolith.isolate import Pool
pool = Pool(workers=2, warm_up="isolate_faults:hold_the_lock")
while len(pool.status().workers) < 3:
    time.sleep(0.001)
print(*[w.pid for w in pool.status().workers], flush=True)
time.sleep(100)
"""
    for _ in range(3):
        with start(script(text)) as parent:
            assert parent.stdout is not None
            pids = [int(pid) for pid in parent.stdout.readline().split()]
            parent.kill()
            parent.wait()
            assert gone_within(pids, 1.0)


def test_a_forked_child_does_not_keep_workers_alive(script: Script) -> None:
    text = """
import os, sys, time
import isolate_faults as faults
from isolith.isolate import Pool
pool = Pool(workers=1, spares=0)
pids = [pool.run(faults.pid)]
child = os.fork()
if child == 0:
    os.close(1)
    os.close(2)
    time.sleep(5)
    os._exit(0)
print(child, *pids, flush=True)
time.sleep(100)
"""
    with start(script(text)) as parent:
        assert parent.stdout is not None
        child, *pids = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
        parent.wait()
        assert gone_within(pids, 1.0)
        assert alive(child)
        os.kill(child, signal.SIGKILL)


def test_a_forked_child_gets_workers_of_its_own(script: Script) -> None:
    text = """
import os
import isolate_faults as faults
from isolith.isolate import Pool, run
with Pool(workers=2) as pool:
    first = {pool.run(faults.pid), run(faults.pid)}
    child = os.fork()
    if child == 0:
        assert pool.status().workers == ()
        own = {pool.run(faults.pid), run(faults.pid), pool.submit(faults.pid).result()}
        assert not own & first, (own, first)
        pool.close()
        raise SystemExit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert {pool.run(faults.pid), run(faults.pid)} == first
    assert sum(pool.status().deaths.values()) == 0
"""
    finish(script(text))


@pytest.mark.parametrize(
    "ending", ["", "sys.exit(0)", "pool.close(0)", "del pool", "threading._shutdown()"]
)
def test_the_interpreter_exits_while_calls_run(script: Script, ending: str) -> None:
    text = f"""
import sys, threading, time
import isolate_faults as faults
from isolith.isolate import Pool, PoolClosed
pool = Pool(workers=2)
futures = [pool.submit(faults.hold_the_lock) for _ in range(4)]
def run():
    try:
        pool.run(faults.hold_the_lock)
    except PoolClosed:
        pass
threading.Thread(target=run, daemon=True).start()
while sum(w.state == "busy" for w in pool.status().workers) < 2:
    time.sleep(0.01)
print(*[w.pid for w in pool.status().workers], flush=True)
{ending}
"""
    out, err = finish(script(text))
    assert err == ""
    assert gone_within([int(pid) for pid in out.split()], 1.0)


def test_interrupting_a_call_ends_only_that_call(script: Script, tmp_path: Path) -> None:
    text = """
import os, signal, sys, threading, time
import isolate_faults as faults
from isolith.isolate import Pool
with Pool(workers=2) as pool:
    beside = pool.submit(faults.wait_for, sys.argv[1])
    def interrupt():
        while sum(w.state == "busy" for w in pool.status().workers) < 2:
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    began = time.monotonic()
    try:
        pool.run(faults.hold_the_lock)
    except KeyboardInterrupt:
        assert time.monotonic() - began < 5
    else:
        raise AssertionError
    assert pool.run(faults.echo, 5) == 5
    open(sys.argv[1], "w").close()
    assert beside.result() == "done"
    assert sum(pool.status().deaths.values()) == 0
print("fine")
"""
    assert finish([*script(text), str(tmp_path / "go")])[0] == "fine\n"


def test_interrupting_a_call_that_waits(script: Script, tmp_path: Path) -> None:
    text = """
import os, signal, sys, threading, time
import isolate_faults as faults
from isolith.isolate import Pool
with Pool(workers=1) as pool:
    busy = pool.submit(faults.wait_for, sys.argv[1])
    def interrupt():
        while not pool.status().waiting:
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)
    while not any(w.state == "busy" for w in pool.status().workers):
        time.sleep(0.005)
    threading.Thread(target=interrupt).start()
    try:
        pool.run(faults.echo, 1)
    except KeyboardInterrupt:
        assert pool.status().waiting == 0
    else:
        raise AssertionError
    open(sys.argv[1], "w").close()
    assert busy.result() == "done"
print("fine")
"""
    assert finish([*script(text), str(tmp_path / "go")])[0] == "fine\n"


MAIN = """
import isolith.isolate as isolate
print("imported")
class Point:
    def __init__(self, x):
        self.x = x
def double(point):
    return point.x * 2
if __name__ == "__main__":
    print(isolate.run(double, Point(21)))
    print(isolate(double, Point(1)))
"""


def test_functions_and_classes_of_the_main_script(script: Script) -> None:
    command = script(MAIN)
    assert finish(command)[0] == "imported\n42\n2\n"
    as_module = [sys.executable, "-c", "import runpy; runpy.run_module('script', alter_sys=True)"]
    del as_module
    folder = str(Path(command[1]).parent)
    done = subprocess.run(
        [sys.executable, "-m", "script"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout == "imported\n42\n2\n"


def test_a_main_script_without_a_guard(script: Script) -> None:
    text = """
import isolith.isolate as isolate
def double(x):
    return x * 2
print(isolate.run(double, 21))
"""
    _, err = finish(script(text), code=1)
    assert 'if __name__ == "__main__":' in err


def test_functions_of_an_interactive_session_are_refused() -> None:
    text = "import isolith.isolate as i\ndef f(): pass\ni.run(f)"
    _, err = finish([sys.executable, "-c", text], code=1)
    assert "NotSendable: f is defined in an interactive session" in err


def test_importing_starts_nothing() -> None:
    text = """
import sys, threading
before = set(sys.modules)
import isolith.isolate
new = {name for name in set(sys.modules) - before if "isolate" in name}
assert new == {"isolith.isolate"}, new
assert threading.active_count() == 1
assert "multiprocessing" not in sys.modules and "ctypes" not in sys.modules
"""
    finish([sys.executable, "-c", text])


def test_a_program_that_ignores_sigchld(script: Script) -> None:
    text = """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
import isolate_faults as faults
from isolith.isolate import Pool, WorkerDied
with Pool() as pool:
    assert pool.run(faults.echo, 1) == 1
    try:
        pool.run(faults.segfault, retries=0)
    except WorkerDied as error:
        print(error.crash_class)
"""
    assert finish(script(text))[0] == "killed\n"


def test_a_closed_standard_input(script: Script) -> None:
    text = """
import os
for descriptor in (0, 1, 2):
    os.close(descriptor)
import isolate_faults as faults
from isolith.isolate import Pool
with Pool() as pool:
    raise SystemExit(pool.run(faults.echo, 9))
"""
    finish(script(text), code=9)
