"""Clients of Chroma with servers of their own."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import isolith
from isolith import chroma
from support import is_alive, processes_with, run_python, wait_until

chromadb = pytest.importorskip("chromadb", reason="needs chromadb-client or chromadb")

VECTORS = [[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]]


def server_pid(client: Any) -> int:
    pid: int = client._end.peek()[2][1].server.process_id
    return pid


def notes(client: Any) -> Any:
    return client.get_or_create_collection("notes", embedding_function=None)


def test_a_client_is_one_of_chroma(store: Path) -> None:
    with chroma.PersistentClient(store) as client:
        assert isinstance(client, chromadb.api.ClientAPI)
        assert isinstance(client, chromadb.api.client.Client)
        collection = notes(client)
        collection.add(
            ids=["a", "b", "c"],
            embeddings=VECTORS,
            documents=["red", "green", "yellow"],
            metadatas=[{"warm": True}, {"warm": False}, {"warm": True}],
        )
        found = collection.query(query_embeddings=[[1.0, 0.1]], n_results=2, where={"warm": True})
        assert found["ids"] == [["a", "c"]]
        assert collection.get(where_document={"$contains": "een"})["ids"] == ["b"]
        assert [one.name for one in client.list_collections()] == ["notes"]


def test_what_is_stored_stays(store: Path) -> None:
    with chroma.PersistentClient(path=str(store)) as client:
        notes(client).add(ids=["a"], embeddings=VECTORS[:1])
    with chroma.PersistentClient(path=str(store)) as client:
        assert notes(client).count() == 1
    with isolith.open(store) as db:
        assert db.collection("notes").count() == 1


def test_clients_of_a_store_share_a_server(store: Path, tmp_path: Path) -> None:
    first = chroma.PersistentClient(store)
    second = chroma.PersistentClient(str(store))
    other = chroma.PersistentClient(tmp_path / "other")
    pid = server_pid(first)
    assert server_pid(second) == pid != server_pid(other)
    other.close()
    notes(first).add(ids=["a"], embeddings=VECTORS[:1])
    first.close()
    first.close()
    assert notes(second).count() == 1
    second.close()
    assert not is_alive(pid)
    with pytest.raises(RuntimeError):
        notes(second)


def test_a_server_ends_with_the_last_object_that_needs_it(store: Path) -> None:
    client = chroma.PersistentClient(store)
    pid = server_pid(client)
    collection = notes(client)
    del client
    gc.collect()
    collection.add(ids=["a"], embeddings=VECTORS[:1])
    assert is_alive(pid)
    del collection
    gc.collect()
    assert wait_until(lambda: not is_alive(pid))


def test_nothing_of_a_client_is_kept(store: Path) -> None:
    systems = chromadb.api.client.SharedSystemClient._identifier_to_system
    before = dict(systems)
    client = chroma.PersistentClient(store)
    assert before == systems
    client.close()
    assert before == systems


def test_ephemeral_clients_share_a_store_that_is_deleted(temporary_folder: Path) -> None:
    first, second = chroma.EphemeralClient(), chroma.EphemeralClient()
    notes(first).add(ids=["a"], embeddings=VECTORS[:1])
    assert notes(second).count() == 1
    assert server_pid(first) == server_pid(second)
    folder = Path(first._end.peek()[2][1].server._folder.path)
    assert folder.parent == temporary_folder
    assert folder.stat().st_mode & 0o777 == 0o700
    first.close()
    assert folder.exists()
    second.close()
    assert not folder.exists()
    with chroma.EphemeralClient() as third:
        assert third.list_collections() == []


def test_tenants_and_databases(store: Path) -> None:
    with chroma.PersistentClient(store) as client:
        client._admin_client.create_tenant("team")
        client._admin_client.create_database("articles", "team")
        with chroma.PersistentClient(store, tenant="team", database="articles") as other:
            notes(other)
            assert server_pid(other) == server_pid(client)
        assert client.list_collections() == []
        with pytest.raises(Exception, match="nobody"):
            chroma.PersistentClient(store, tenant="nobody")
        client.set_tenant("team", "articles")
        assert len(client.list_collections()) == 1


def test_reset_needs_the_setting(store: Path) -> None:
    settings = chromadb.config.Settings(allow_reset=True, anonymized_telemetry=False)
    with chroma.PersistentClient(store) as client:
        notes(client)
        with pytest.raises(Exception, match=re.compile("reset", re.I)):
            client.reset()
    for _ in range(2):
        # The same settings can be used again: Chroma's own functions write an address into them.
        with chroma.PersistentClient(store, settings=settings) as client:
            client.reset()
            assert client.list_collections() == []


def test_a_database_of_chroma_is_not_touched(tmp_path: Path) -> None:
    old = tmp_path / "chroma"
    old.mkdir()
    (old / "chroma.sqlite3").write_bytes(b"SQLite format 3\0")
    with pytest.raises(isolith.BadInput, match=r"from_chroma\.py"):
        chroma.PersistentClient(old)
    assert [path.name for path in old.iterdir()] == ["chroma.sqlite3"]


def test_a_file_is_not_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(isolith.BadInput, match="not a folder"):
        chroma.PersistentClient(tmp_path / "file")


def test_a_path_must_not_be_empty() -> None:
    with pytest.raises(isolith.BadInput, match="empty"):
        chroma.PersistentClient("")


def test_proxies_get_nothing(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with chroma.PersistentClient(store) as client:
        client.set_tenant("default_tenant")
        assert notes(client).count() == 0


def test_a_store_that_cannot_be_used(store: Path, tmp_path: Path) -> None:
    with isolith.open(store) as db:
        db.create_collection("notes")
    (store / "seal").unlink()
    with pytest.raises(isolith.StoreForeign):
        chroma.PersistentClient(store)
    with pytest.raises(isolith.StartFailed, match="not an executable file"):
        chroma.PersistentClient(store, binary=tmp_path / "nothing")


def test_the_token_is_needed_and_not_shown(store: Path) -> None:
    with chroma.PersistentClient(store) as client:
        server = client._end.peek()[2][1].server
        address = server.address()
        assert server.token not in Path(f"/proc/{server.process_id}/cmdline").read_text()
        assert address.is_loopback
        httpx = pytest.importorskip("httpx")
        assert httpx.get(f"{address}/api/v2/collections").status_code == 401
        with pytest.raises(Exception, match=re.compile("401|token|unauthorized", re.I)):
            chromadb.HttpClient("127.0.0.1", address.port)
    assert not list(Path(os.environ["XDG_STATE_HOME"]).rglob("token"))


def test_http_clients_find_the_token(served: Callable[..., isolith.Client]) -> None:
    port = served()._transport.server.running.port  # type: ignore[union-attr]
    client = chroma.HttpClient(port=port)
    notes(client).add(ids=["a"], embeddings=VECTORS[:1])

    async def count() -> int:
        client = await chroma.AsyncHttpClient("127.0.0.1", port)
        collection = await client.get_collection("notes", embedding_function=None)
        found: int = await collection.count()
        return found

    assert asyncio.run(count()) == 1
    with pytest.raises(Exception, match=re.compile("401|token|unauthorized", re.I)):
        chroma.HttpClient(port=port, headers={"authorization": "Bearer another-token"})


def test_asynchronous_clients_do_not_share_tokens(
    served: Callable[..., isolith.Client], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tokens = ["a" * 20, "b" * 20]
    ports = []
    for token in tokens:
        monkeypatch.setenv("ISOLITH_TOKEN", token)
        ports.append(served()._transport.server.running.port)  # type: ignore[union-attr]
    monkeypatch.delenv("ISOLITH_TOKEN")

    async def both() -> None:
        for port, token in zip(ports, tokens):
            headers = {"Authorization": f"Bearer {token}"}
            client = await chroma.AsyncHttpClient(port=port, headers=headers)
            assert await client.heartbeat() > 0

    asyncio.run(both())


def test_chroma_is_needed_only_when_it_is_used() -> None:
    program = (
        "import sys\n"
        "sys.modules['chromadb'] = None\n"
        "from isolith import chroma\n"
        "assert not {'httpx', 'numpy'} & set(sys.modules)\n"
        "for function in (chroma.PersistentClient, chroma.EphemeralClient, chroma.HttpClient):\n"
        "    try:\n"
        "        function()\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    lines = run_python(program).splitlines()
    assert len(lines) == 3
    assert all("pip install chromadb-client" in line for line in lines)


def test_a_program_that_just_ends_leaves_nothing(store: Path) -> None:
    program = (
        "import sys\n"
        "from isolith import chroma\n"
        "client = chroma.PersistentClient(sys.argv[1])\n"
        "notes = client.get_or_create_collection('notes', embedding_function=None)\n"
        "notes.add(ids=['a'], embeddings=[[1, 2]])\n"
        "temporary = chroma.EphemeralClient()\n"
        "print(temporary._end.peek()[2][1].server._folder.path)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(store)], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert not Path(done.stdout.strip()).exists()
    assert not processes_with(str(store))
