"""When a call that failed is sent again. Values in, values out."""

from __future__ import annotations

import time
from typing import Any

from ._call import Call
from .errors import ConnectionLost, Error

# Pauses before the attempts that follow a lost connection, in seconds.
_AFTER_LOSS = (0.0, 0.05, 0.2, 0.5)

# How often a server that is busy is asked again, if the time limit allows it.
_MOST_WHEN_BUSY = 8


class Attempts:
    """The attempts of one call.

    :ivar deadline: when the time of the call is over, by the monotonic clock
    """

    def __init__(self, call: Call[Any], timeout: float) -> None:
        self._call = call
        self._lost = 0
        self._busy = 0
        self.deadline = time.monotonic() + timeout

    def pause_after(self, error: Error) -> float:
        """How many seconds to wait before the next attempt.

        :raises Error: the error itself, if there is no other attempt
        """
        left = self.deadline - time.monotonic()
        if isinstance(error, ConnectionLost):
            may_repeat = self._call.is_repeatable or not error._may_have_arrived
            if may_repeat and self._lost < len(_AFTER_LOSS):
                pause = _AFTER_LOSS[self._lost]
                self._lost += 1
                if pause < left:
                    return pause
        elif error._retry_after is not None and self._busy < _MOST_WHEN_BUSY:
            self._busy += 1
            # Callers that were refused together do not come back together.
            pause = error._retry_after * (0.5 + (time.perf_counter_ns() % 1000) / 1000)
            if pause < left:
                return pause
        raise error
