"""One server for many tests, each of which finds an empty store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import isolith


@pytest.fixture(scope="session")
def shared(
    temporary_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, isolith.Client]]:
    """The store, and a handle of it."""
    folder = tmp_path_factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as patch:
        use_folder(patch, folder)
        for name in ("ISOLITH_STORE", "ISOLITH_TOKEN", "ISOLITH_SECRET_FILE", "ISOLITH_FAULT"):
            patch.delenv(name, raising=False)
        client = isolith.open(folder / "store")
    with client:
        yield folder / "store", client


def use_folder(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """The user's files are below a folder, so that the user's secret fits the store."""
    patch.setenv("XDG_DATA_HOME", str(folder / "data"))
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))


@pytest.fixture
def store(
    shared: tuple[Path, isolith.Client], environment: None, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder of the store, which the test can open, too."""
    use_folder(monkeypatch, shared[0].parent)
    return shared[0]


@pytest.fixture
def db(shared: tuple[Path, isolith.Client]) -> Iterator[isolith.Client]:
    """A handle of the store, which is emptied after the test."""
    client = shared[1]
    yield client
    for collection in client.collections():
        client.collection(collection.name).drop()
    client.graph.query("MATCH (n) DETACH DELETE n")
