#!/usr/bin/env python3
"""Four servers on one store, each with a client that remembers and states facts, while two more search. Every write must
be acknowledged, visible to all at once, and there once; with --kill, too, although workers are killed all the time."""
import argparse, asyncio, contextlib, os, random, signal

from mcp import Client

from place import Place, children_of

WRITERS, SEARCHERS, EACH = 4, 2, 20


async def answer(client, tool, arguments):
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise RuntimeError(f"{tool}: {result.structured_content}")
    return result.structured_content


async def write(client, who, done, refused):
    for n in range(EACH):
        text = f"writer {who} noted thing number {n}"
        for tool, arguments in (
            ("memory_add", {"text": text, "wing": f"wing{who}", "room": "crowd", "source": f"{who}-{n}"}),
            ("fact_add", {"subject": f"writer{who}", "predicate": "noted", "object": f"thing{n}"}),
        ):
            try:
                answered = await answer(client, tool, arguments)
                assert answered["created"], f"there already: {arguments}"
                done.append((tool, who, n, answered["id"]))
            except RuntimeError as error:
                refused.append(str(error))


async def search(client, stop, failed):
    count = 0
    while not stop.is_set():
        try:
            await answer(client, "memory_search", {"query": "which thing was noted", "limit": 5})
            await answer(client, "fact_query", {"entity": "writer0"})
            count += 1
        except RuntimeError as error:
            failed.append(str(error))
    return count


async def kill(pid, stop):
    """Kills a worker now and then."""
    chance, kills = random.Random(7), 0
    while not stop.is_set():
        await asyncio.sleep(0.05)
        if workers := children_of(*children_of(pid)):
            try:
                os.kill(chance.choice(workers), signal.SIGKILL)
                kills += 1
            except ProcessLookupError:
                pass
    return kills


async def everything(client):
    """What a client sees: sources of drawers, facts."""
    drawers, cursor = [], None
    while True:
        page = await answer(client, "memory_list", {"limit": 100, **({"cursor": cursor} if cursor else {})})
        drawers += [drawer["source"] for drawer in page["drawers"]]
        cursor = page.get("next_cursor")
        if not cursor:
            break
    facts = []
    for who in range(WRITERS):
        found = await answer(client, "fact_query", {"entity": f"writer{who}", "limit": 100})
        facts += [(fact["subject"], fact["object"]) for fact in found["facts"]]
    return sorted(drawers), sorted(facts)


async def crowd(place, killing):
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client(place.stdio())) for _ in range(WRITERS + SEARCHERS)]
        done, refused, failed, stop = [], [], [], asyncio.Event()
        others = [asyncio.create_task(search(client, stop, failed)) for client in clients[WRITERS:]]
        killer = asyncio.create_task(kill(os.getpid(), stop)) if killing else None
        await asyncio.gather(*(write(client, who, done, refused) for who, client in enumerate(clients[:WRITERS])))
        stop.set()
        searches = sum(await asyncio.gather(*others))
        kills = await killer if killer else 0
        wanted = WRITERS * EACH * 2
        print(f"  {len(done)} of {wanted} writes, {searches} searches, {kills} workers killed")
        assert not refused and len(done) == wanted, refused[:3]
        assert not failed, failed[:3]
        drawers = sorted(f"{who}-{n}" for who in range(WRITERS) for n in range(EACH))
        facts = sorted((f"writer{who}", f"thing{n}") for who in range(WRITERS) for n in range(EACH))
        for client in clients:
            assert await everything(client) == (drawers, facts), "a client sees something else"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    arguments = parser.parse_args()
    for killing in (False, True):
        print("with workers killed" if killing else "undisturbed")
        with Place(arguments.program) as place:
            asyncio.run(crowd(place, killing))
        assert not children_of(os.getpid()), "processes are left"


if __name__ == "__main__":
    main()
