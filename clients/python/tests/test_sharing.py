"""Threads and forked children that use one handle."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Callable

import pytest

import isolith
from support import is_alive, run_python, server_pid, wait_until


def in_child(function: Callable[[], object]) -> int:
    """Runs a function in a forked child; its exit status is 0 if it returns true."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if function() else 1)
        except BaseException:
            import traceback

            traceback.print_exc()
        os._exit(2)
    return child


def succeeds(child: int) -> bool:
    """Whether a child has ended with success."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_share_a_handle(db: isolith.Client) -> None:
    notes = db.collection("notes")
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(25):
                id = f"{thread}-{number}"
                notes.upsert([{"id": id, "vector": [float(thread), 1.0], "document": id}])
                assert notes.get([id])[0].document == id
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert notes.count() == 200
    # There were never more connections than calls at a time.
    assert len(db._transport._open) <= 8


def test_a_forked_child_uses_the_server_of_its_parent(db: isolith.Client) -> None:
    db.memory.add("of the parent")
    pid = server_pid(db)
    parent = list(db._transport._open)
    assert parent

    def child() -> bool:
        assert db.memory.search("parent")[0].text == "of the parent"
        assert db.memory.add("of the child").created
        own = db._transport._open
        assert own
        assert not any(connection in parent for connection in own)
        db.close()
        return is_alive(pid)

    assert succeeds(in_child(child))
    assert is_alive(pid)
    assert {drawer.text for drawer in db.memory.list()} == {"of the parent", "of the child"}


def test_children_and_the_parent_work_at_the_same_time(db: isolith.Client) -> None:
    notes = db.collection("notes")
    notes.upsert([{"id": "first", "vector": [1.0, 2.0]}])

    def work(name: str) -> bool:
        for number in range(20):
            id = f"{name}-{number}"
            notes.upsert([{"id": id, "vector": [1.0, float(number)], "document": id}])
            if notes.get_one(id).document != id:
                return False
        return True

    children = [in_child(lambda name=name: work(name)) for name in "abcd"]  # type: ignore[misc]
    assert work("parent")
    # All of them are waited for, also after one that failed.
    outcomes = [succeeds(child) for child in children]
    assert all(outcomes)
    assert notes.count() == 101


def test_a_child_does_not_stop_the_server_when_it_exits(store: Path) -> None:
    # The child leaves through sys.exit, so that the exit handlers of the parent run in it.
    printed = run_python(
        "import os, sys, isolith\n"
        "from support import is_alive, server_pid\n"
        "db = isolith.open(sys.argv[1])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    db.memory.add('child')\n"
        "    sys.exit()\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "print(is_alive(server_pid(db)), len(list(db.memory.list())))\n",
        str(store),
    )
    assert printed == "True 1\n"


def test_a_child_whose_parent_is_gone_starts_a_server(store: Path) -> None:
    printed = run_python(
        "import os, sys, time, isolith\n"
        "from support import wait_until, is_alive, server_pid\n"
        "db = isolith.open(sys.argv[1])\n"
        "db.memory.add('parent')\n"
        "old, (out, into) = server_pid(db), os.pipe()\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0:\n"
        ""
        "        assert wait_until(lambda: not is_alive(old), 10)\n"
        "        db.memory.add('grandchild')\n"
        "        os.write(into, str(len(list(db.memory.list()))).encode())\n"
        "        sys.exit()\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "db.close()\n"
        "os.close(into)\n"
        "print(os.read(out, 10).decode())\n",
        str(store),
    )
    assert printed == "2\n"


def test_a_child_can_be_forked_while_threads_are_in_calls(db: isolith.Client) -> None:
    stop = threading.Event()
    failures: list[BaseException] = []

    def busy() -> None:
        try:
            while not stop.is_set():
                db.memory.search("anything")
        except BaseException as error:
            failures.append(error)

    db.memory.add("text")
    threads = [threading.Thread(target=busy) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            assert succeeds(in_child(lambda: db.memory.search("text").hits))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


def test_a_cancelled_call_is_cancelled_although_a_child_has_its_connection(
    db: isolith.Client,
) -> None:
    """A forked child has copies of all descriptors, which would keep connections open."""
    db.memory.add("text")
    slow = (
        "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b UNWIND range(1, 99) AS c "
        "WITH a, b, c WHERE a * b * c = -1 RETURN count(*)"
    )
    interrupted = threading.Event()

    def query() -> None:
        with pytest.raises(isolith.Closed):
            db.graph.query(slow)
        interrupted.set()

    def working() -> bool:
        with isolith.connect(f"unix:{path}") as other:
            return any(
                worker.job == "cypher"
                for store in other.status().stores
                for worker in store.workers
            )

    address = db._transport.server.running
    assert address is not None
    path = address.path
    thread = threading.Thread(target=query)
    thread.start()
    assert wait_until(working)
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    try:
        db._transport.close()
        assert interrupted.wait(5)
        assert wait_until(lambda: not working())
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        thread.join()


def test_multiprocessing_works_with_every_start_method(store: Path) -> None:
    for method in ("fork", "forkserver", "spawn"):
        printed = run_python(
            "import multiprocessing, sys\n"
            "from sharing_worker import count\n"
            "import isolith\n"
            "if __name__ == '__main__':\n"
            "    with isolith.open(sys.argv[1]) as db:\n"
            "        db.memory.add('text')\n"
            "        context = multiprocessing.get_context(sys.argv[2])\n"
            "        with context.Pool(2) as pool:\n"
            "            print(pool.map(count, [sys.argv[1]] * 3))\n"
            "            pool.close()\n"
            "            pool.join()\n",
            str(store),
            method,
        )
        assert printed == "[1, 1, 1]\n"
