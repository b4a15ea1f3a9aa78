"""Private servers: how they start, are shared, die and end."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import isolith
from support import is_alive, processes_with, run_python, server_pid, wait_until


def test_a_server_ends_with_its_handle(store: Path) -> None:
    client = isolith.open(store)
    pid = server_pid(client)
    assert is_alive(pid)
    started = time.monotonic()
    client.close()
    assert time.monotonic() - started < 3
    assert not is_alive(pid)
    assert client.closed
    client.close()
    with pytest.raises(isolith.Closed):
        client.collections()


def test_handles_of_a_store_share_a_server(store: Path, tmp_path: Path) -> None:
    with isolith.open(store) as first, isolith.open(str(store)) as second:
        assert server_pid(first) == server_pid(second)
        with isolith.open(tmp_path / "other") as other:
            assert server_pid(other) != server_pid(first)
        first.close()
        second.memory.add("still here")
        pid = server_pid(second)
    assert not is_alive(pid)


def test_a_lost_handle_is_closed(store: Path) -> None:
    client = isolith.open(store)
    pid = server_pid(client)
    memory = client.memory
    del client
    memory.add("a namespace keeps the handle")
    del memory
    gc.collect()
    assert wait_until(lambda: not is_alive(pid))


def test_the_private_folder_is_private(store: Path, temporary_folder: Path) -> None:
    with isolith.open(store) as client:
        address = client._transport.server.running
        assert address is not None and address.path is not None
        folder = Path(address.path).parent
        assert folder.parent == temporary_folder
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


def test_folders_of_killed_processes_are_removed(store: Path, temporary_folder: Path) -> None:
    abandoned = temporary_folder / "isolith-py-abandoned"
    abandoned.mkdir(mode=0o700)
    (abandoned / "server.log").write_text("")
    os.utime(abandoned, (1, 1))
    foreign = temporary_folder / "isolith-py-not-ours"
    foreign.mkdir(mode=0o755)
    os.utime(foreign, (1, 1))
    with isolith.open(store):
        assert not abandoned.exists()
        assert foreign.exists()
    foreign.rmdir()


def test_a_killed_server_is_started_again(db: isolith.Client) -> None:
    db.memory.add("before")
    first = server_pid(db)
    os.kill(first, signal.SIGKILL)
    assert db.memory.add("after").created
    assert server_pid(db) != first
    assert {drawer.text for drawer in db.memory.list()} == {"before", "after"}


def test_calls_in_flight_survive_a_killed_server(db: isolith.Client) -> None:
    texts = [f"text {number}" for number in range(60)]
    failures: list[BaseException] = []

    def write(part: list[str]) -> None:
        try:
            for text in part:
                assert db.memory.add(text).id
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(texts[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        time.sleep(0.1)
        os.kill(server_pid(db), signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert failures == []
    stored = [drawer.text for drawer in db.memory.list()]
    assert sorted(stored) == sorted(texts)


def test_a_write_without_a_key_is_not_repeated(db: isolith.Client) -> None:
    db.create_collection("a", dimension=2)
    stopped = server_pid(db)
    os.kill(stopped, signal.SIGSTOP)
    killer = threading.Timer(0.3, os.kill, (stopped, signal.SIGKILL))
    killer.start()
    with pytest.raises(isolith.ConnectionLost):
        db.collection("a").rename("b")
    killer.join()
    # The handle is usable all the same.
    assert [one.name for one in db.collections()] == ["a"]


def test_a_server_whose_socket_is_gone_is_replaced(db: isolith.Client) -> None:
    address = db._transport.server.running
    assert address is not None and address.path is not None
    first = server_pid(db)
    os.unlink(address.path)
    db._transport._idle.clear()
    assert db.collections() == []
    assert not is_alive(first)


def test_a_missing_program_is_reported(store: Path, tmp_path: Path) -> None:
    with pytest.raises(isolith.StartFailed, match="not an executable file"):
        isolith.open(store, binary=tmp_path / "missing")


def test_a_program_that_fails_is_reported(store: Path, tmp_path: Path) -> None:
    program = tmp_path / "broken"
    program.write_text("#!/bin/sh\necho cannot load a library >&2\nexit 127\n")
    program.chmod(0o755)
    with pytest.raises(isolith.StartFailed, match=r"exit code 127.*cannot load a library"):
        isolith.open(store, binary=program)


def test_the_error_of_the_program_is_kept(tmp_path: Path) -> None:
    # What the program prints with --json when it fails.
    program = tmp_path / "failing"
    program.write_text(
        "#!/bin/sh\n"
        """echo '{"error":{"code":"read_only","message":"cannot write","hint":"mount it"}}'\n"""
        "exit 1\n"
    )
    program.chmod(0o755)
    with pytest.raises(isolith.ReadOnly) as caught:
        isolith.open(tmp_path / "store", binary=program)
    assert caught.value.hint == "mount it"


def test_a_path_that_is_no_store_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    with pytest.raises(isolith.Error):
        isolith.open(file)


def test_a_store_from_elsewhere_is_refused(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with isolith.open(store) as client:
        client.memory.add("mine")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    with pytest.raises(isolith.StoreForeign) as caught:
        isolith.open(store)
    assert caught.value.hint


def test_without_a_path_it_uses_the_stores_of_the_command_line(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(project)
    with isolith.open() as client:
        client.memory.add("for all projects")
        client.code.index()
    assert (project / ".isolith" / "truth.sqlite").exists()
    assert (tmp_path / "data" / "isolith" / "truth.sqlite").exists()


def test_a_server_survives_the_thread_that_started_it(store: Path) -> None:
    opened: list[isolith.Client] = []
    thread = threading.Thread(target=lambda: opened.append(isolith.open(store)))
    thread.start()
    thread.join()
    with opened[0] as client:
        pid = server_pid(client)
        time.sleep(0.5)
        client.memory.add("text")
        assert server_pid(client) == pid


def test_the_exit_of_the_interpreter_ends_the_server(store: Path) -> None:
    printed = run_python(
        "import sys, isolith\n"
        "from support import server_pid\n"
        "db = isolith.open(sys.argv[1])\n"
        "db.memory.add('text')\n"
        "print(server_pid(db))\n",
        str(store),
    )
    assert not is_alive(int(printed))


def test_an_exception_ends_the_server(store: Path) -> None:
    program = (
        "import sys, isolith\n"
        "from support import server_pid\n"
        "db = isolith.open(sys.argv[1])\n"
        "print(server_pid(db), flush=True)\n"
        "raise SystemExit('failed')\n"
    )
    command = [sys.executable, "-c", program, str(store)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert not is_alive(int(done.stdout))


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_interpreter_leaves_no_process(
    store: Path, temporary_folder: Path, kill: signal.Signals
) -> None:
    program = (
        "import sys, time, isolith\n"
        "db = isolith.open(sys.argv[1])\n"
        "db.memory.add('text')\n"
        "db.memory.search('text')\n"
        "print([worker.pid for store in db.status().stores for worker in store.workers], "
        "flush=True)\n"
        "time.sleep(60)\n"
    )
    before = set(temporary_folder.glob("isolith-py-*"))
    command = [sys.executable, "-c", program, str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        workers = [pid for pid in eval(process.stdout.readline()) if pid]
        assert workers
        servers = processes_with(f"--store\0{store}")
        assert servers
        process.send_signal(kill)
        process.wait()
        gone = wait_until(lambda: not any(map(is_alive, servers + workers)), 1.0)
        assert gone, f"left: {[pid for pid in servers + workers if is_alive(pid)]}"
    # The next start removes the folder that was left, but not one that is new.
    for folder in temporary_folder.glob("isolith-py-*"):
        os.utime(folder, (1, 1))
    with isolith.open(store) as client:
        assert [drawer.text for drawer in client.memory.list()] == ["text"]
    # Other tests may have left theirs.
    assert set(temporary_folder.glob("isolith-py-*")) <= before


def test_a_daemon_thread_in_a_call_does_not_disturb_the_exit(store: Path) -> None:
    started = time.monotonic()
    printed = run_python(
        "import sys, threading, time, isolith\n"
        "db = isolith.open(sys.argv[1])\n"
        "notes = db.collection('notes')\n"
        "def busy():\n"
        "    number = 0\n"
        "    while True:\n"
        "        number += 1\n"
        "        notes.upsert([{'id': str(number), 'vector': [1.0, 2.0]}])\n"
        "        db.memory.search('anything')\n"
        "for _ in range(4):\n"
        "    threading.Thread(target=busy, daemon=True).start()\n"
        "time.sleep(0.5)\n"
        "print('done')\n",
        str(store),
    )
    assert printed == "done\n"
    assert time.monotonic() - started < 10
    assert processes_with(f"--store\0{store}") == []


def test_calls_in_exit_handlers_do_not_hang(store: Path) -> None:
    printed = run_python(
        "import atexit, sys\n"
        "def late():\n"
        "    try:\n"
        "        db.memory.add('too late')\n"
        "    except isolith.Error as error:\n"
        "        print(type(error).__name__)\n"
        "atexit.register(late)\n"
        "import isolith\n"
        "db = isolith.open(sys.argv[1])\n",
        str(store),
    )
    assert printed in ("Closed\n", "ConnectionLost\n")


def test_ctrl_c_cancels_a_call_and_the_handle_stays_usable(store: Path) -> None:
    printed = run_python(
        "import os, signal, sys, threading, time, isolith\n"
        "db = isolith.open(sys.argv[1])\n"
        "db.memory.add('text')\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "started = time.monotonic()\n"
        "try:\n"
        "    db.graph.query("
        "        'UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b UNWIND range(1, 99) AS c '"
        "        'WITH a, b, c WHERE a * b * c = -1 RETURN count(*)')\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', time.monotonic() - started < 3)\n"
        "print(len(list(db.memory.list())))\n",
        str(store),
    )
    assert printed == "interrupted True\n1\n"


def test_ctrl_c_in_the_terminal_does_not_reach_the_server(store: Path) -> None:
    with isolith.open(store) as client:
        assert os.getpgid(server_pid(client)) != os.getpgid(0)
        assert os.getsid(server_pid(client)) != os.getsid(0)


def test_the_log_of_a_server_does_not_reach_the_terminal(store: Path) -> None:
    # run_python checks that nothing is written to standard error.
    run_python("import isolith, sys\nisolith.open(sys.argv[1]).close()", str(store))
