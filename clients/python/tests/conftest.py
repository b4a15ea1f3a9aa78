"""Every test has a folder of its own for its store and for the user's files.

The program is the one in ``ISOLITH_BINARY``, or the one that was installed with the package.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

import isolith
from isolith._binary import find_binary
from support import processes_with

# Where children of tests find the package and the helpers.
PYTHONPATH = os.pathsep.join(
    [str(Path(isolith.__file__).parent.parent), str(Path(__file__).parent)]
)


@pytest.fixture(scope="session", autouse=True)
def temporary_folder() -> Iterator[Path]:
    """The folder for the sockets of servers. Nothing may be left in it."""
    folder = Path(tempfile.mkdtemp(prefix="ipt-", dir="/tmp"))
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    os.environ["TMPDIR"] = str(folder)
    yield folder
    tempfile.tempdir = before
    del os.environ["TMPDIR"]
    left = sorted(path.name for path in folder.glob("isolith-py-*"))
    servers = processes_with(str(folder))
    shutil.rmtree(folder)
    assert not servers, f"servers are left: {servers}"
    assert not left, f"folders are left: {left}"


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's files are those of the test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("ISOLITH_STORE", "ISOLITH_TOKEN", "ISOLITH_SECRET_FILE", "ISOLITH_FAULT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)


@pytest.fixture
def binary() -> str:
    """The program."""
    return find_binary()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where a store can be created."""
    return tmp_path / "store"


@pytest.fixture
def db(store: Path) -> Iterator[isolith.Client]:
    """A handle of a new store."""
    with isolith.open(store) as client:
        yield client


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with code."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "prices.py").write_text(
        'def net(price):\n    """The price without tax."""\n    return price / 1.2\n\n\n'
        'def gross(price):\n    """The price with tax."""\n    return price - net(price) + price\n'
    )
    (folder / "cart.py").write_text(
        "from prices import gross\n\n\nclass Cart:\n    def total(self, items):\n"
        "        return sum(gross(item) for item in items)\n"
    )
    return folder


@pytest.fixture
def served(binary: str, tmp_path: Path) -> Iterator[Callable[..., isolith.Client]]:
    """Starts a server on a TCP port, and connects to it."""
    started: list[tuple[subprocess.Popen[bytes], isolith.Client]] = []

    def serve(*options: str) -> isolith.Client:
        command = [binary, "serve", "--listen", "127.0.0.1:0", "--json", "--quiet"]
        command += ["--store", str(tmp_path / "served"), *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        client = isolith.connect(url)
        started.append((process, client))
        return client

    yield serve
    for process, client in started:
        client.close()
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
