"""The client for asyncio: what differs from the blocking one."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Callable

import pytest

import isolith
from isolith import aio
from isolith.api.memory import Memory
from support import is_alive, processes_with, run_python, wait_until

SLOW = (
    "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b UNWIND range(1, 99) AS c "
    "WITH a, b, c WHERE a * b * c = -1 RETURN count(*)"
)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs a coroutine in a new event loop, whose debug mode finds blunders."""
    asyncio.run(main(), debug=True)


def pid_of(db: aio.Client) -> int:
    """The process of a handle's private server."""
    pid = db._transport.server.process_id  # type: ignore[union-attr]
    assert pid is not None
    return pid


async def until(condition: Callable[[], Coroutine[Any, Any, bool]], seconds: float = 5) -> bool:
    """Whether a condition becomes true in time."""
    deadline = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


async def is_working(db: aio.Client) -> bool:
    """Whether a worker runs a query."""
    stores = (await db.status()).stores
    return any(worker.job == "cypher" for store in stores for worker in store.workers)


def test_all_namespaces(store: Path, project: Path) -> None:
    async def main() -> None:
        async with aio.open(store) as db:
            added = await db.memory.add("Deploys go out on Tuesdays.", wing="acme")
            assert (await db.memory.get(added.id)).wing == "acme"
            assert [drawer.id async for drawer in db.memory.list()] == [added.id]
            assert (await db.memory.search("when do we ship"))[0].id == added.id
            await db.facts.add("Max", "lives_in", "Berlin")
            assert [fact.object async for fact in db.facts.query("Max")] == ["Berlin"]
            seen: list[isolith.Progress] = []
            report = await db.code.index(project, progress=seen.append)
            assert report.files.indexed == 2
            assert (await db.code.search("price with tax"))[0].path == "prices.py"
            assert (await db.graph.callers("net")).found[0].name == "gross"
            rows = db.graph.rows("UNWIND range(1, 25) AS n RETURN n", page_size=10)
            assert [row[0] async for row in rows] == list(range(1, 26))
            assert len(await db.graph.query("UNWIND range(1, 11000) AS n RETURN n")) == 11000
            notes = await db.create_collection("notes", dimension=2)
            stored = await notes.add(ids=["a", "b"], vectors=[[1, 0], [0, 1]])
            assert stored.inserted == 2
            assert (await notes.query(vector=[1, 0.1]))[0].id == "a"
            assert [record.id async for record in notes.records(page_size=1)] == ["a", "b"]
            assert (await (await db.get_or_create("notes", dimension=2)).count()) == 2
            await notes.rename("renamed")
            assert [one.name for one in await db.collections()] == ["renamed"]
            assert (await db.status()).ok and (await db.doctor()).ok and await db.reconnect()
            assert await db.crashes() == []
            assert await db.quarantine() == []
            assert await db.jobs.list()
            with pytest.raises(isolith.NotFound):
                await db.memory.get("0" * 24)
            pid = pid_of(db)
        assert db.closed and not is_alive(pid)
        with pytest.raises(isolith.Closed):
            await db.collections()

    run(main)


def test_it_has_the_names_of_the_blocking_client() -> None:
    def names(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert names(aio.Client) == names(isolith.Client)
    assert names(aio.Collection) == names(isolith.Collection)
    assert names(aio.Memory) == names(Memory)
    for name in ("open", "connect"):
        blocking, asynchronous = getattr(isolith, name), getattr(aio, name)
        parameters = inspect.signature(blocking).parameters
        assert inspect.signature(asynchronous).parameters == parameters
    for name in names(isolith.Client):
        blocking, asynchronous = getattr(isolith.Client, name), getattr(aio.Client, name)
        if inspect.isfunction(blocking):
            wanted = list(inspect.signature(blocking).parameters.values())
            assert list(inspect.signature(asynchronous).parameters.values()) == wanted, name


def test_a_client_can_be_awaited(store: Path) -> None:
    async def main() -> None:
        db = await aio.open(store)
        await db.memory.add("text")
        await db.close()
        await db.close()

    run(main)


def test_tasks_share_a_client(store: Path) -> None:
    async def main() -> None:
        async with aio.open(store) as db:
            notes = db.collection("notes")
            await notes.upsert([{"id": "first", "vector": [1.0]}])

            async def work(number: int) -> None:
                id = str(number)
                await notes.upsert([{"id": id, "vector": [float(number)]}])
                assert (await notes.get_one(id)).id == id

            await asyncio.gather(*map(work, range(50)))
            assert await notes.count() == 51

    run(main)


def test_it_shares_the_server_of_blocking_handles(db: isolith.Client, store: Path) -> None:
    async def main() -> None:
        async with aio.open(store) as other:
            await other.memory.add("text")
            assert pid_of(other) == db._transport.server.process_id  # type: ignore[union-attr]

    run(main)
    assert len(list(db.memory.list())) == 1


def test_cancelling_a_task_cancels_the_call(store: Path) -> None:
    async def main() -> None:
        async with aio.open(store) as db:
            await db.memory.add("text")
            task = asyncio.create_task(db.graph.query(SLOW))
            assert await until(lambda: is_working(db))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            async def is_idle() -> bool:
                return not await is_working(db)

            assert await until(is_idle)
            assert (await db.memory.search("text")).hits
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(db.graph.query(SLOW), 0.2)
            assert (await db.memory.search("text")).hits

    run(main)


def test_a_loop_that_is_left_early_asks_for_no_more_pages(store: Path) -> None:
    async def main() -> None:
        async with aio.open(store) as db:
            for number in range(5):
                await db.memory.add(f"text {number}")
            async for _ in db.memory.list(page_size=2):
                break

    run(main)


def test_a_killed_server_is_started_again(store: Path) -> None:
    async def main() -> None:
        async with aio.open(store) as db:
            await db.memory.add("before")
            first = pid_of(db)
            os.kill(first, signal.SIGKILL)
            assert (await db.memory.add("after")).created
            assert pid_of(db) != first
            assert len([drawer async for drawer in db.memory.list()]) == 2

    run(main)


def test_the_time_limit_of_a_call(store: Path) -> None:
    async def main() -> None:
        async with aio.open(store, timeout=1) as db:
            await db.memory.add("text")
            with pytest.raises(isolith.Timeout) as caught:
                await db.graph.query(SLOW)
            assert caught.value.status == 504

    run(main)


def test_a_silent_server_is_given_up(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isolith._streams.GRACE", 0.1)

    async def main() -> None:
        async with aio.open(store) as db:
            db._transport.timeout = 0.2
            os.kill(pid_of(db), signal.SIGSTOP)
            try:
                with pytest.raises(isolith.Timeout):
                    await db.status()
            finally:
                os.kill(pid_of(db), signal.SIGCONT)

    run(main)


def test_failures_of_the_start_are_reported(store: Path, tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(isolith.StartFailed):
            async with aio.open(store, binary=tmp_path / "missing"):
                pass
        file = tmp_path / "file"
        file.write_text("text")
        with pytest.raises(isolith.Error):
            await aio.open(file)
        client = aio.connect("unix:/nowhere/socket")
        with pytest.raises(isolith.ConnectionLost):
            await client.status()
        await client.close()

    run(main)


def test_a_client_works_in_one_loop_after_the_other(store: Path) -> None:
    client = aio.open(store)
    for number in range(3):

        async def main(text: str) -> None:
            await client.memory.add(text)
            assert (await client.memory.search(text)).hits

        asyncio.run(main(f"text {number}"))
    asyncio.run(client.close())


def test_it_connects_over_tcp(served: Callable[..., isolith.Client]) -> None:
    url = str(served()._transport.server.running)

    async def main() -> None:
        async with aio.connect(url) as db:
            await db.memory.add("text")
            big = db.collection("big")
            records = [{"id": str(n), "vector": [1.0], "document": "x" * 9000} for n in range(900)]
            assert (await big.add(records)).inserted == 900
            assert len([record async for record in big.records()]) == 900
        async with aio.connect(url, token="wrong-token-of-nobody") as db:
            pass

    with pytest.raises(isolith.Unauthorized):
        run(main)


def test_a_forked_child_does_not_disturb_the_loop_of_its_parent(store: Path) -> None:
    async def main() -> None:
        async with aio.open(store) as db:
            await db.memory.add("parent")
            child = os.fork()
            if child == 0:
                try:
                    # The child needs a loop of its own.
                    asyncio._set_running_loop(None)

                    async def in_child() -> None:
                        await db.memory.add("child")

                    loop = asyncio.new_event_loop()
                    loop.run_until_complete(in_child())
                    os._exit(0)
                finally:
                    os._exit(1)
            for _ in range(20):
                await db.memory.search("parent")
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            texts = {drawer.text async for drawer in db.memory.list()}
            assert texts == {"parent", "child"}

    asyncio.run(main())


def test_a_lost_client_is_closed(store: Path) -> None:
    printed = run_python(
        "import asyncio, gc, sys, isolith.aio\n"
        "async def main():\n"
        "    db = isolith.aio.open(sys.argv[1])\n"
        "    await db.memory.add('text')\n"
        "    print(db._transport.server.process_id)\n"
        "    del db\n"
        "    gc.collect()\n"
        "asyncio.run(main())\n",
        str(store),
    )
    assert not is_alive(int(printed))


def test_the_exit_of_the_interpreter_ends_the_server(store: Path) -> None:
    run_python(
        "import asyncio, sys, threading, time, isolith.aio\n"
        "async def main():\n"
        "    db = isolith.aio.open(sys.argv[1])\n"
        "    while True:\n"
        "        await db.memory.add(str(time.time()))\n"
        "threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()\n"
        "time.sleep(0.5)\n",
        str(store),
    )
    assert wait_until(lambda: processes_with(f"--store\0{store}") == [])
