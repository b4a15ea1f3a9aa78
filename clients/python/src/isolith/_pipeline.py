"""What a worker of a pipeline asks the file system and the server for."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING, Any

from .errors import BadInput, Error, NotFound, UnexpectedReply

if TYPE_CHECKING:
    from .api.collections import IngestReceipt
    from .client import Client


def checked_file(path: str | os.PathLike[str]) -> str:
    """The absolute path of a file that can be read, so that no collection is created for others."""
    absolute = os.path.abspath(os.fspath(path))
    try:
        # A pipe is not waited for.
        descriptor = os.open(absolute, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFound(f"{absolute} does not exist") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {absolute}: {error}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadInput(f"{absolute} is not a file")
    finally:
        os.close(descriptor)
    return str(absolute)


def counts_of(receipt: IngestReceipt) -> dict[str, int]:
    names = ("rows", "inserted", "updated", "unchanged")
    return {name: getattr(receipt, name) for name in names}


def writer_of(handle: Client) -> int | None:
    """The process that writes to the store for the server of a handle."""
    front = getattr(handle._transport.server, "process_id", None)
    with contextlib.suppress(Error):
        for store in handle.status().stores:
            for worker in store.workers:
                if worker.role == "store-writer" and worker.front == front:
                    return worker.pid
    return None


def created_at_of(handle: Client, name: str) -> str | None:
    from urllib.parse import quote

    return creation_of(ask_chroma(handle, "GET", "/" + quote(name, safe=""), None))


def creation_of(collection: Any) -> str | None:
    created_at = (collection.get("metadata") or {}).get("created_at")
    return created_at if isinstance(created_at, str) else None


def ask_chroma(handle: Client, method: str, path: str, body: Any) -> Any:
    """Asks Chroma's API for a collection, because it has metadata of collections.

    :raises BadInput: if the request is refused
    """
    from ._call import Call, to_json

    target = "/api/v2/tenants/default_tenant/databases/default_database/collections" + path
    data = None if body is None else to_json(body)
    try:
        return handle.run_call(Call(method, target, data, _itself, None, True, False))
    except UnexpectedReply as error:
        if error.status is not None and 400 <= error.status < 500:
            raise BadInput(_chroma_message(error.message)) from None
        raise


def _chroma_message(text: str) -> str:
    """The message in one of Chroma's errors, which may have been shortened."""
    _, _, message = text.partition('"message":"')
    return message.rstrip('"}') or text


def _itself(reply: Any) -> Any:
    return reply
