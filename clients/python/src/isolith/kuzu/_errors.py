"""The exception of the module. Its texts begin as those of Kuzu do."""

from __future__ import annotations

from ..errors import Error

_PAGE = "Isolith's documentation, \"Kuzu's classes\", lists what differs"


class KuzuError(Error, RuntimeError):
    """What the methods of this module raise: a ``RuntimeError``, as in Kuzu.

    ``code`` and ``hint`` are those of Isolith. The exception of the package that it was made of,
    if there was one, is its ``__cause__``.
    """


def parser_error(message: str, hint: str = "") -> KuzuError:
    """A statement that cannot be parsed."""
    return KuzuError(f"Parser exception: {message}", code="bad_input", hint=hint)


def binder_error(message: str, hint: str = "") -> KuzuError:
    """A statement that does not fit the tables."""
    return KuzuError(f"Binder exception: {message}", code="bad_input", hint=hint)


def runtime_error(message: str, hint: str = "") -> KuzuError:
    """A statement that fails while it runs."""
    return KuzuError(f"Runtime exception: {message}", code="bad_input", hint=hint)


def copy_error(message: str, hint: str = "") -> KuzuError:
    """Rows that cannot be copied."""
    return KuzuError(f"Copy exception: {message}", code="bad_input", hint=hint)


def no_table(name: str, hint: str = "") -> KuzuError:
    """A table that was not declared."""
    error = binder_error(f"Table {name} does not exist.", hint)
    error.code = "not_found"
    return error


def table_exists(name: str) -> KuzuError:
    """A table that was declared before."""
    error = binder_error(f"{name} already exists in catalog.")
    error.code = "already_exists"
    return error


def refused(what: str, hint: str = "") -> KuzuError:
    """Something that Kuzu has and this module has not."""
    return KuzuError(f"not supported: {what}", code="bad_input", hint=hint or _PAGE)


def closed(what: str) -> KuzuError:
    """A use of something that was closed."""
    return KuzuError(what, code="closed")


def converted(error: Error) -> KuzuError:
    """An exception of the package as one of this module.

    To be raised from the original, which has the details of a crash.
    """
    if isinstance(error, KuzuError):
        return error
    hint = error.hint
    if "/v1/" in hint:
        # The hint of the server is about HTTP.
        hint = ""
    return KuzuError(error.message, code=error.code, hint=hint, status=error.status)
