"""Jobs: long operations of the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, List

from .._call import Endpoint, Plan
from .._model import Model, one
from .._operation import Asynchronous, Blocking, operation

_LIST = Endpoint("GET", "/jobs")
_GET = Endpoint("GET", "/jobs/{id}")
_CANCEL = Endpoint("DELETE", "/jobs/{id}")


@dataclass(frozen=True)
class Progress(Model):
    """How far a job is. ``fraction`` is an estimate for all stages, from 0 to 1.

    ``total`` is 0 if it is not known. ``message`` is for people.
    """

    stage: str
    done: int
    total: int
    fraction: float
    message: str = ""

    @classmethod
    def callback(cls, progress: Callable[[Progress], None] | None) -> Callable[[Any], None] | None:
        """What passes the JSON of progress on to a function."""
        if progress is None:
            return None
        function = progress
        return lambda data: function(cls.from_json(data))


@dataclass(frozen=True)
class Job(Model):
    """A job.

    ``state`` is ``running``, ``succeeded`` (then there is a result), ``failed`` (then there is an
    error) or ``cancelled``.
    """

    id: str
    operation: str
    state: str
    started_at: str
    progress: Progress = one(Progress)
    result: Any = None
    error: dict[str, Any] | None = None


class JobOperations:
    """The jobs of a server, also those that others have started."""

    @operation
    def list(self) -> Plan[List[Job]]:
        """Lists the jobs since the server was started, the newest first."""

        def parse(reply: Any) -> List[Job]:
            return [Job.from_json(job) for job in reply["jobs"]]

        return _LIST(parse)

    @operation
    def get(self, id: str, *, wait: int | None = None) -> Plan[Job]:
        """A job.

        :param wait: how many seconds to wait for its end: up to 60, and less than the time limit
        """
        return _GET(Job.from_json, id=id, wait=wait)

    @operation
    def cancel(self, id: str) -> Plan[Job]:
        """Cancels and forgets a job. What it has finished is kept."""
        return _CANCEL(Job.from_json, id=id)


class Jobs(JobOperations, Blocking):
    """The jobs of a server."""


class AsyncJobs(JobOperations, Asynchronous):
    """The jobs of a server."""
