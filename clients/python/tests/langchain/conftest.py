"""Runs the asynchronous tests of LangChain, each in an event loop of its own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

import pytest

from shared_store import db, shared, store

__all__ = ["db", "loop", "shared", "store"]


@pytest.fixture(autouse=True)
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """The event loop of a test and its fixtures."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    own_loop = pyfuncitem.funcargs["loop"]
    assert isinstance(own_loop, asyncio.AbstractEventLoop)
    own_loop.run_until_complete(pyfuncitem.obj(**arguments))
    return True
