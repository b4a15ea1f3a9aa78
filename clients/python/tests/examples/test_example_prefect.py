"""The Prefect flow: crashes, restarts and duplicates, and every document exactly once.

Prefect's server runs on this machine for the time of a flow. Nothing else can be reached: the proxy
for all other addresses does not exist.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import isolith
from examples.example_faults import count_in, kill_servers
from pipeline.pipeline_files import is_exact, ready
from support import wait_until

if importlib.util.find_spec("prefect") is None:
    pytest.skip("needs prefect", allow_module_level=True)

EXAMPLES = Path(__file__).parents[2] / "examples"

PROGRAM = """
import json, sys
from prefect_flow import ingest_folder

for _ in range(2):
    print(json.dumps(ingest_folder(sys.argv[1], store=sys.argv[2])), flush=True)
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs the flow twice, in a process group of its own."""
    (tmp_path / "t").mkdir()
    settings = {
        "TMPDIR": tmp_path / "t",
        "HOME": tmp_path,
        "PREFECT_HOME": tmp_path / "prefect",
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "WARNING",
        "DO_NOT_TRACK": "1",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1,localhost",
        "PYTHONPATH": os.pathsep.join([str(EXAMPLES), os.environ["PYTHONPATH"]]),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    for name in ("PREFECT_API_URL", "PREFECT_PROFILE", "http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        kill(process)


def kill(process: subprocess.Popen[str]) -> None:
    """Kills a flow and Prefect's server."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def test_every_document_exactly_once(run: Any, store: Path, tmp_path: Path) -> None:
    outbox = tmp_path / "outbox"
    outbox.mkdir()
    rows = range(60_000)
    for part in range(10):
        # Each file has documents of the next one, too.
        first = part * 6000
        ready(outbox / f"{part:02}.json", range(first, min(first + 7000, len(rows))))
    (outbox / "bad.json").write_text('{"chromadb_ready": {"ids": ["a"]')

    with isolith.open(store) as db:
        process = run(outbox, store)
        assert wait_until(lambda: count_in(db) > 0, 120)
        kill(process)
        reached = count_in(db)

        process = run(outbox, store)
        assert wait_until(lambda: count_in(db) > reached or process.poll() is not None, 120)
        servers = kill_servers(db)
        output, _ = process.communicate(timeout=120)
    # A fast flow may have stored everything by then.
    assert servers <= 1
    assert process.returncode == 0
    first_run, second_run = map(json.loads, output.splitlines())
    assert first_run["documents"] == second_run["documents"] == len(rows)
    assert list(first_run["failed"]) == list(second_run["failed"]) == ["bad.json"]
    assert second_run["inserted"] == second_run["updated"] == 0
    assert is_exact(store, rows)
