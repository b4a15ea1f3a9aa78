"""From the reply of a server to the answer of a call, or an exception."""

from __future__ import annotations

from typing import Any, TypeVar

from ._address import Address
from ._call import Call, Endpoint, from_json
from ._http import ReplyParser, request_head
from ._limits import JOB_SILENCE
from .errors import (
    Closed,
    ConnectionLost,
    Error,
    Timeout,
    UnexpectedReply,
    WorkerFailed,
    from_details,
)

T = TypeVar("T")

_STATUS_OF_BUSY = 503

_CRASHES = Endpoint("GET", "/crashes")


def fixed_headers(address: Address, token: str | None, agent: str) -> str:
    """The header lines that all requests to a server have."""
    lines = f"host: {address.host_header}\r\nuser-agent: {agent}\r\n"
    if token is not None:
        lines += f"authorization: Bearer {token}\r\n"
    return lines


def request_of(call: Call[Any], fixed: str) -> bytes:
    """The bytes of a call's request."""
    body = call.body
    length = None if body is None else len(body)
    head = request_head(call.method, call.target, fixed, call.extra_headers(), length)
    return head if body is None else head + body


def answer_of(call: Call[T], reply: ReplyParser, body: bytes) -> T:
    """The answer in a complete reply.

    :raises Error: if the reply is an error, or cannot be understood
    """
    if not 200 <= reply.status < 300:
        raise error_of(reply, body)
    try:
        value = from_json(body)
    except ValueError:
        raise UnexpectedReply("the reply is not JSON", status=reply.status) from None
    return parsed(call, value)


def parsed(call: Call[T], value: Any) -> T:
    """The answer of a call for the JSON that the server sent.

    :raises UnexpectedReply: if it lacks something
    """
    try:
        return call.parse(value)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        if isinstance(error, Error):
            raise
        what = f"{call.method} {call.target.partition('?')[0]}"
        raise UnexpectedReply(f"cannot read the reply to {what}: {error!r}") from error


def error_of(reply: ReplyParser, body: bytes) -> Error:
    """The exception for a reply that is not a success."""
    try:
        details = from_json(body)["error"]
        error = from_details(details, reply.status)
    except (ValueError, KeyError, TypeError, AttributeError):
        text = body[:200].decode("utf-8", "replace").strip()
        error = UnexpectedReply(
            f"the server replied with status {reply.status}: {text or 'no text'}",
            status=reply.status,
        )
    retry_after = reply.headers.get("retry-after", "")
    if reply.status == _STATUS_OF_BUSY and retry_after.isascii() and retry_after.isdigit():
        error._retry_after = float(retry_after)
    return error


def timed_out(call: Call[Any], timeout: float) -> Timeout:
    """The exception for a reply that does not come."""
    limit = JOB_SILENCE if call.is_job else timeout
    return Timeout(f"no reply within {limit:g} seconds")


def lost_during_call(error: BaseException, is_closed: bool) -> Error:
    """The exception for a connection that broke after the request was sent, or part of it."""
    if is_closed:
        return Closed("the handle was closed during the call")
    lost = ConnectionLost(f"the connection was lost during the call: {reason_of(error)}")
    lost._may_have_arrived = True
    return lost


def not_connected(address: Address | None, reason: str) -> ConnectionLost:
    """The exception for a server that cannot be reached."""
    return ConnectionLost(
        f"cannot connect to {address}: {reason}", hint="check that the server is running"
    )


def reason_of(error: BaseException) -> str:
    """What broke a connection, in a few words."""
    if isinstance(error, EOFError):
        return "the server closed it"
    return str(getattr(error, "strerror", None) or error) or "timed out"


def report_call(error: Error) -> Call[Any] | None:
    """The call that finds the report of the crash that an error is about, if there is one."""
    if not isinstance(error, WorkerFailed) or error.worker_pid is None or error.report:
        return None

    def parse(reply: Any) -> None:
        for crash in reply["crashes"]:
            error.report = crash["report"]

    return _CRASHES(parse, worker_pid=error.worker_pid, limit=1)
