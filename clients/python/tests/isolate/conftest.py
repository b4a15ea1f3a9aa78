from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import isolith
from isolate_support import children
from isolith.isolate.pool import Pool

SOURCES = Path(str(isolith.__file__)).absolute().parents[1]


@pytest.fixture(autouse=True)
def _private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reports go to a folder of the test's own, and no process and descriptor is left."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    before, files = children(), len(os.listdir("/proc/self/fd"))
    yield
    assert children() <= before
    assert len(os.listdir("/proc/self/fd")) <= files


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Pool]]:
    """Starts pools that are closed after the test."""
    pools: list[Pool] = []

    def start(**settings: Any) -> Pool:
        settings.setdefault("crash_folder", tmp_path / "crashes")
        settings.setdefault("timeout", 20.0)
        pools.append(Pool(**settings))
        return pools[-1]

    yield start
    for pool in pools:
        pool.close(0.0)


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], list[str]]:
    """Writes a script and returns the command that runs it."""

    def script(text: str) -> list[str]:
        path = tmp_path / "script.py"
        path.write_text(text)
        return [sys.executable, str(path)]

    return script


@pytest.fixture(autouse=True)
def _sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts find the package and the faults."""
    paths = [str(SOURCES), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
