"""Calls of the API as values. Nothing here sends anything.

An :class:`Endpoint` is one operation of the server. Calling it makes a :class:`Call`, which a
client runs. A method that needs several calls is a generator of them: ``reply = yield from
call``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Generic,
    TypeVar,
    Union,
)

from .errors import BadInput

if TYPE_CHECKING:
    import datetime

T = TypeVar("T")

# A day, or an instant with a time zone: `2026-01-31`, `2026-01-31T09:30:00Z`, or the same as
# objects.
Moment = Union[str, "datetime.date", "datetime.datetime"]


class Call(Generic[T]):
    """One request, and how to read its reply.

    :ivar is_repeatable: whether sending it twice does what sending it once does
    :ivar on_progress: for jobs, what gets each progress event
    """

    __slots__ = (
        "body",
        "is_job",
        "is_repeatable",
        "key",
        "method",
        "on_progress",
        "parse",
        "target",
    )

    def __init__(
        self,
        method: str,
        target: str,
        body: bytes | None,
        parse: Callable[[Any], T],
        key: str | None,
        is_repeatable: bool,
        is_job: bool,
    ) -> None:
        self.method = method
        self.target = target
        self.body = body
        self.parse = parse
        self.key = key
        self.is_repeatable = is_repeatable
        self.is_job = is_job
        self.on_progress: Callable[[Any], None] | None = None

    def __iter__(self) -> Generator[Call[T], Any, T]:
        reply: T = yield self
        return reply

    def extra_headers(self) -> dict[str, str]:
        """The headers that only this call has."""
        headers = {}
        if self.key is not None:
            headers["idempotency-key"] = self.key
        if self.is_job:
            headers["accept"] = "text/event-stream"
        return headers


# What a method of the API does: one call, or several in turn.
Plan = Union[Call[T], Generator["Call[Any]", Any, T]]


class Endpoint:
    """An operation of the server.

    Arguments in braces are part of the path. The others are in the query of ``GET`` and ``DELETE``,
    and in the body of the rest. Arguments that are ``None`` are omitted.

    :param keyed: whether it takes an idempotency key; it gets one for each call
    :param repeatable: whether repeating it without a key is harmless; ``GET`` always is
    """

    def __init__(
        self,
        method: str,
        path: str,
        *,
        keyed: bool = False,
        repeatable: bool = False,
        job: bool = False,
    ) -> None:
        self.method = method
        self.path = path
        self.is_keyed = keyed
        self.is_job = job
        self._is_repeatable = keyed or repeatable or method == "GET"
        self._has_body = method in ("POST", "PUT", "PATCH")
        self._in_path = [part.partition("}")[0] for part in path.split("{")[1:]]

    def __call__(
        self,
        parse: Callable[[Any], T],
        *,
        idempotency_key: str | None = None,
        raw_body: bytes | None = None,
        **arguments: Any,
    ) -> Call[T]:
        """A call of it.

        :param raw_body: the body, if the caller has serialized it already
        :raises BadInput: if the arguments cannot be sent
        """
        target = self.path
        for name in self._in_path:
            target = target.replace("{" + name + "}", _quoted(name, arguments.pop(name)))
        body = raw_body
        if self._has_body:
            if body is None:
                given = {name: value for name, value in arguments.items() if value is not None}
                body = to_json(given)
        else:
            target += _query(arguments)
        key = None
        if self.is_keyed:
            key = idempotency_key if idempotency_key is not None else os.urandom(16).hex()
            check_header("the idempotency key", key)
        return Call(self.method, "/v1" + target, body, parse, key, self._is_repeatable, self.is_job)


def strings(name: str, values: Sequence[str] | None) -> list[str] | None:
    """A list of strings.

    :raises BadInput: if it is one string, which would be taken for a list of its characters
    """
    if isinstance(values, str):
        raise BadInput(f"{name} must be a list of strings, not a string")
    return None if values is None else [*values]


def check_header(what: str, value: str) -> None:
    """Refuses what cannot be in a header."""
    if not (isinstance(value, str) and value and value.isascii() and value.isprintable()):
        raise BadInput(f"{what} must be printable ASCII text")
    if " " in value:
        raise BadInput(f"{what} must not contain spaces")


def to_json(value: Any) -> bytes:
    """JSON in UTF-8.

    :raises BadInput: if a number is not finite, a text has lone surrogates, or a value has no JSON
    """
    try:
        return json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
        ).encode("utf-8")
    except UnicodeEncodeError as error:
        shown = ascii(error.object[max(0, error.start - 20) : error.start + 20])
        raise BadInput(f"text cannot be encoded as UTF-8: lone surrogate in {shown}") from None
    except (ValueError, TypeError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"cannot be sent as JSON: {error}") from None


def from_json(data: bytes) -> Any:
    """The value of a reply's body.

    :raises ValueError: if it is not JSON
    """
    return json.loads(data)


def _plain(value: Any) -> Any:
    """JSON for values of the standard library and of numpy."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not a type that JSON has")


def _quoted(name: str, value: Any) -> str:
    from urllib.parse import quote

    if not isinstance(value, str):
        raise BadInput(f"{name} must be a string, not {type(value).__name__}")
    if not value:
        raise BadInput(f"{name} must not be empty")
    try:
        return quote(value, safe="")
    except UnicodeEncodeError:
        raise BadInput(f"{name} cannot be encoded as UTF-8: {value!a}") from None


def _query(arguments: dict[str, Any]) -> str:
    from urllib.parse import quote

    pairs = []
    for name, value in arguments.items():
        if value is None:
            continue
        if isinstance(value, bool):
            text = "true" if value else "false"
        elif hasattr(value, "isoformat"):
            text = value.isoformat()
        else:
            text = str(value)
        try:
            pairs.append(f"{name}={quote(text, safe='')}")
        except UnicodeEncodeError:
            raise BadInput(f"{name} cannot be encoded as UTF-8: {text!a}") from None
    return "?" + "&".join(pairs) if pairs else ""
