"""The tests of this folder share a server. Each of them finds a database without tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from isolith import kuzu
from shared_store import use_folder


@pytest.fixture(scope="session")
def database(
    temporary_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[kuzu.Database]:
    """A database in a store of its own."""
    folder = tmp_path_factory.mktemp("kuzu")
    with pytest.MonkeyPatch.context() as patch:
        use_folder(patch, folder)
        for name in ("ISOLITH_STORE", "ISOLITH_TOKEN", "ISOLITH_SECRET_FILE", "ISOLITH_FAULT"):
            patch.delenv(name, raising=False)
        database = kuzu.Database(folder / "store")
    with database:
        yield database


@pytest.fixture
def conn(
    database: kuzu.Database, environment: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[kuzu.Connection]:
    """A connection to the database, which is emptied after the test."""
    use_folder(monkeypatch, Path(database.database_path).parent)
    with kuzu.Connection(database) as connection:
        yield connection
    client = database._client
    assert client is not None
    client.graph.query("MATCH (n) DETACH DELETE n")
    for row in client.graph.query("SHOW CONSTRAINTS"):
        client.graph.query(f"DROP CONSTRAINT `{row[0].replace('`', '``')}`")
    database._tables.forget()
