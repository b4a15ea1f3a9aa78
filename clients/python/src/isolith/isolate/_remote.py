"""Turns a worker's description of an exception into an exception."""

from __future__ import annotations

import builtins
from typing import Any

from ._wire import Violation
from .errors import NotPlain, RemoteError, RemoteTraceback, TooLarge


def check(described: Any) -> dict[str, Any]:
    """Checks the shape of a description. Raises `Violation`."""
    shape = {
        "module": str,
        "name": str,
        "message": str,
        "args": (tuple, type(None)),
        "traceback": str,
        "code": (str, type(None)),
        "memory_error": bool,
        "panicked": bool,
    }
    if type(described) is not dict or described.keys() != shape.keys():
        raise Violation("invalid description of an exception")
    for key, kind in shape.items():
        if not isinstance(described[key], kind):  # type: ignore[arg-type]
            raise Violation("invalid description of an exception")
    return described


def rebuild(described: dict[str, Any]) -> Exception:
    """Returns the exception, with the worker's traceback as its cause.

    Built-in exceptions keep their type; others become `RemoteError`, because making them would
    mean running code that a worker has chosen.
    """
    error = _exception(described)
    if described["code"] is None:
        error.__cause__ = RemoteTraceback(described["traceback"])
    return error


def _exception(described: dict[str, Any]) -> Exception:
    module, name, message = described["module"], described["name"], described["message"]
    if described["code"] == "not_plain":
        return NotPlain(message)
    if described["code"] == "too_large":
        return TooLarge(message)
    kind = getattr(builtins, name, None) if module == "builtins" else None
    if isinstance(kind, type) and issubclass(kind, Exception) and described["args"] is not None:
        try:
            error = kind(*described["args"])
        except Exception:
            pass
        else:
            return error
    prefix = "" if module == "builtins" else f"{module}."
    return RemoteError(prefix + name, message)
