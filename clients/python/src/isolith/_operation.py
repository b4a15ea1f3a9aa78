"""Methods that exist twice, blocking and for asyncio, and are defined once.

A namespace such as :class:`isolith.api.memory.MemoryOperations` has methods that return calls.
Mixed with :class:`Blocking`, they run them and return the answer; with :class:`Asynchronous`,
they are coroutines. Type checkers see the right signature in both.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from functools import wraps
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Generic,
    Protocol,
    TypeVar,
    overload,
)

from ._call import Call, Plan

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")
else:
    P = TypeVar("P")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class BlockingRunner(Protocol):
    """Sends calls and waits for their replies."""

    def resolve(self, path: str) -> str: ...

    def run_call(self, call: Call[T]) -> T: ...


class AsyncRunner(Protocol):
    """Sends calls and awaits their replies."""

    def resolve(self, path: str) -> str: ...

    async def run_call(self, call: Call[T]) -> T: ...


def resolved(namespace: Any, path: str | os.PathLike[str]) -> str:
    """A path as the server of a namespace understands it."""
    text: str = namespace._runner.resolve(os.fspath(path))
    return text


class Blocking:
    """Methods wait for the answer."""

    _runner: BlockingRunner

    def __init__(self, runner: BlockingRunner) -> None:
        self._runner = runner


class Asynchronous:
    """Methods are coroutines."""

    _runner: AsyncRunner

    def __init__(self, runner: AsyncRunner) -> None:
        self._runner = runner


def run(runner: BlockingRunner, plan: Plan[T]) -> T:
    """Runs the calls of a plan one after the other."""
    if isinstance(plan, Call):
        return runner.run_call(plan)
    try:
        call = next(plan)
        while True:
            try:
                reply = runner.run_call(call)
            except Exception as error:
                call = plan.throw(error)
            else:
                call = plan.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        plan.close()


async def run_async(runner: AsyncRunner, plan: Plan[T]) -> T:
    """Runs the calls of a plan one after the other."""
    if isinstance(plan, Call):
        return await runner.run_call(plan)
    try:
        call = next(plan)
        while True:
            try:
                reply = await runner.run_call(call)
            except Exception as error:
                call = plan.throw(error)
            else:
                call = plan.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        plan.close()


class operation(Generic[P, T]):
    """Makes a method of a function that returns a plan."""

    def __init__(self, function: Callable[Concatenate[Any, P], Plan[T]]) -> None:
        self.__doc__ = function.__doc__
        self.function = function

        @wraps(function)
        def blocking(self: Blocking, *args: Any, **options: Any) -> T:
            return run(self._runner, function(self, *args, **options))

        @wraps(function)
        async def asynchronous(self: Asynchronous, *args: Any, **options: Any) -> T:
            return await run_async(self._runner, function(self, *args, **options))

        self._blocking, self._asynchronous = blocking, asynchronous

    @overload
    def __get__(self, instance: None, owner: type) -> operation[P, T]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, instance: Asynchronous, owner: type
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if isinstance(instance, Blocking):
            return MethodType(self._blocking, instance)
        if isinstance(instance, Asynchronous):
            return MethodType(self._asynchronous, instance)
        return self


# Yields the items of one page after the other.
Pages = Generator["Call[Any]", Any, "list[T]"]


class listing(Generic[P, T]):
    """Makes a method that returns an iterator of a function that returns pages.

    The function gets the cursor of the page, ``None`` for the first one, after its own arguments,
    and returns a call whose reply is a :class:`Page`. Pages are asked for as they are needed.
    """

    def __init__(
        self, function: Callable[Concatenate[Any, P], Callable[[Any], Call[Page[T]]]]
    ) -> None:
        self.__doc__ = function.__doc__
        self.function = function

        @wraps(function)
        def blocking(self: Blocking, *args: Any, **options: Any) -> Iterator[T]:
            return _iterate(self._runner, function(self, *args, **options))

        @wraps(function)
        def asynchronous(self: Asynchronous, *args: Any, **options: Any) -> AsyncIterator[T]:
            return _iterate_async(self._runner, function(self, *args, **options))

        self._blocking, self._asynchronous = blocking, asynchronous

    @overload
    def __get__(self, instance: None, owner: type) -> listing[P, T]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, instance: Asynchronous, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if isinstance(instance, Blocking):
            return MethodType(self._blocking, instance)
        if isinstance(instance, Asynchronous):
            return MethodType(self._asynchronous, instance)
        return self


class Page(Generic[T_co]):
    """A part of a list, and the cursor of the next part; ``None`` if there is none."""

    __slots__ = ("items", "next")

    def __init__(self, items: list[T_co], next: Any) -> None:
        self.items = items
        self.next = next


def _iterate(runner: BlockingRunner, page_at: Callable[[Any], Call[Page[T]]]) -> Iterator[T]:
    cursor: Any = None
    while True:
        page = runner.run_call(page_at(cursor))
        yield from page.items
        cursor = page.next
        if cursor is None:
            return


async def _iterate_async(
    runner: AsyncRunner, page_at: Callable[[Any], Call[Page[T]]]
) -> AsyncIterator[T]:
    cursor: Any = None
    while True:
        page = await runner.run_call(page_at(cursor))
        for item in page.items:
            yield item
        cursor = page.next
        if cursor is None:
            return
