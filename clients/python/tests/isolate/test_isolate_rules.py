"""The pure parts: what class a death has, and what follows from it."""

from __future__ import annotations

import itertools
import signal
from dataclasses import replace

import pytest

from isolith.isolate._bisect import Bisection
from isolith.isolate._breaker import Backoff, Breaker
from isolith.isolate._classify import (
    Circumstances,
    DeathClass,
    End,
    KillReason,
    Phase,
    classify,
    dump_signal,
    is_allocator_refusal,
)
from isolith.isolate._retry import Action, Record, Terms, counts_for_pool, judge
from isolith.isolate._staffing import Staff, to_start, to_stop

CRASH, PANIC, OOM = DeathClass.CRASH, DeathClass.PANIC, DeathClass.OUT_OF_MEMORY
KILLED, TIMEOUT, PROTOCOL = DeathClass.KILLED, DeathClass.TIMEOUT, DeathClass.PROTOCOL
EXIT, START = DeathClass.EXIT, DeathClass.START_FAILURE

BUSY = Circumstances()


def by_us(reason: KillReason) -> Circumstances:
    return replace(BUSY, killed=reason)


def ended(number: int) -> End:
    return End(signal=number)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (ended(signal.SIGSEGV), CRASH),
        (ended(signal.SIGBUS), CRASH),
        (ended(signal.SIGILL), CRASH),
        (ended(signal.SIGFPE), CRASH),
        (ended(signal.SIGABRT), CRASH),
        (ended(signal.SIGSYS), CRASH),
        (ended(signal.SIGXCPU), CRASH),
        (ended(signal.SIGTRAP), CRASH),
        (ended(64), CRASH),
        (ended(dump_signal()), CRASH),
        (ended(signal.SIGKILL), KILLED),
        (ended(signal.SIGTERM), KILLED),
        (ended(signal.SIGHUP), KILLED),
        (ended(signal.SIGINT), KILLED),
        (End(exit_code=0), PROTOCOL),
        (End(exit_code=101), PANIC),
        (End(exit_code=1), EXIT),
        # A shell's exit code for a signal is not a signal.
        (End(exit_code=139), EXIT),
        (End(), KILLED),
    ],
)
def test_classes_of_ends_during_a_job(end: End, expected: DeathClass) -> None:
    assert classify(end, BUSY) is expected


KILL, ABORT, SEGV = ended(signal.SIGKILL), ended(signal.SIGABRT), ended(signal.SIGSEGV)
IDLE = replace(BUSY, phase=Phase.IDLE)
STARTING = replace(BUSY, phase=Phase.STARTING)
STOPPING = replace(BUSY, phase=Phase.STOPPING)


@pytest.mark.parametrize(
    ("end", "seen", "expected"),
    [
        (KILL, by_us(KillReason.DEADLINE), TIMEOUT),
        (KILL, by_us(KillReason.STOP_GRACE), TIMEOUT),
        (KILL, by_us(KillReason.VIOLATION), PROTOCOL),
        (KILL, by_us(KillReason.SHUTDOWN), None),
        (KILL, by_us(KillReason.CANCELLED), None),
        (KILL, replace(by_us(KillReason.CONDEMNED), panicked=True), PANIC),
        (KILL, replace(by_us(KillReason.CONDEMNED), memory_error=True), OOM),
        (ended(dump_signal()), by_us(KillReason.DEADLINE), TIMEOUT),
        # It crashed by itself just before our signal arrived.
        (SEGV, by_us(KillReason.DEADLINE), CRASH),
        (KILL, replace(BUSY, oom_kill=True), OOM),
        # An out-of-memory kill elsewhere does not explain our own kill at the deadline.
        (KILL, replace(by_us(KillReason.DEADLINE), oom_kill=True), TIMEOUT),
        (ABORT, replace(BUSY, allocator_refused=True), OOM),
        (SEGV, replace(BUSY, allocator_refused=True), CRASH),
        (KILL, replace(BUSY, violated=True), PROTOCOL),
        (End(exit_code=3), replace(BUSY, violated=True), PROTOCOL),
        (SEGV, replace(BUSY, violated=True), CRASH),
        (End(), replace(BUSY, violated=True), PROTOCOL),
        (End(exit_code=0), IDLE, EXIT),
        (KILL, IDLE, KILLED),
        (End(exit_code=0), STOPPING, None),
        (SEGV, STOPPING, CRASH),
        (End(exit_code=0), STARTING, START),
        (SEGV, STARTING, START),
        (KILL, STARTING, START),
    ],
)
def test_circumstances_change_the_class(
    end: End, seen: Circumstances, expected: DeathClass | None
) -> None:
    assert classify(end, seen) is expected


def test_failed_allocations_are_recognised_in_the_output() -> None:
    assert is_allocator_refusal("memory allocation of 1048576 bytes failed")
    assert is_allocator_refusal("  what():  std::bad_alloc")
    assert not is_allocator_refusal("the memory allocation of last week failed")


def test_ends_have_names() -> None:
    assert [str(end) for end in (SEGV, End(exit_code=3), ended(200), End())] == [
        "SIGSEGV",
        "exit code 3",
        "signal 200",
        "unknown end",
    ]


FIRST, SECOND = Record(), Record(strikes=1)


@pytest.mark.parametrize(
    ("record", "terms", "death", "read", "expected"),
    [
        (FIRST, Terms(), CRASH, True, Action.RETRIED),
        (FIRST, Terms(), PANIC, True, Action.RETRIED),
        (FIRST, Terms(), PROTOCOL, True, Action.RETRIED),
        (FIRST, Terms(), EXIT, True, Action.RETRIED),
        (FIRST, Terms(), OOM, True, Action.RETRIED_ALONE),
        (FIRST, Terms(), KILLED, True, Action.RETRIED),
        (FIRST, Terms(), TIMEOUT, True, Action.GAVE_UP),
        (FIRST, Terms(idempotent=True), TIMEOUT, True, Action.RETRIED),
        (SECOND, Terms(), CRASH, True, Action.QUARANTINED),
        (SECOND, Terms(), OOM, True, Action.QUARANTINED),
        (SECOND, Terms(), KILLED, True, Action.RETRIED),
        (SECOND, Terms(idempotent=True), TIMEOUT, True, Action.QUARANTINED),
        (SECOND, Terms(strikes=3), CRASH, True, Action.RETRIED),
        # A batch is not to blame as a whole, and a job cannot be blamed for one death.
        (SECOND, Terms(single=False), CRASH, True, Action.GAVE_UP),
        (FIRST, Terms(strikes=1), CRASH, True, Action.GAVE_UP),
        # The worker died before it had read the job.
        (SECOND, Terms(), CRASH, False, Action.RETRIED),
        (Record(outside_kills=9), Terms(), KILLED, True, Action.RETRIED),
        (Record(outside_kills=10), Terms(), KILLED, True, Action.GAVE_UP),
    ],
)
def test_what_happens_to_the_job(
    record: Record, terms: Terms, death: DeathClass, read: bool, expected: Action
) -> None:
    after, action = judge(record, terms, death, read=read)
    assert action is expected
    blamed = read and death.blames_job
    assert after.strikes == record.strikes + blamed
    assert after.outside_kills == record.outside_kills + (not blamed)


@pytest.mark.parametrize(
    ("record", "terms", "death", "expected"),
    [
        (FIRST, Terms(), CRASH, True),
        (SECOND, Terms(), CRASH, False),
        (FIRST, Terms(bisecting=True), CRASH, False),
        (FIRST, Terms(), KILLED, False),
        (FIRST, None, CRASH, True),
        (FIRST, None, KILLED, False),
        (FIRST, None, START, True),
    ],
)
def test_which_deaths_count_for_the_pool(
    record: Record, terms: Terms | None, death: DeathClass, expected: bool
) -> None:
    assert counts_for_pool(record, terms, death) is expected


def run_bisection(items: int, deadly: set[int]) -> tuple[set[int], int]:
    bisection, found, jobs = Bisection(range(items)), set(), 0
    seen: list[int] = []
    while True:
        step = bisection.next()
        if step is None:
            break
        jobs += 1
        if deadly & set(range(step.start, step.stop)) and len(step) > 1:
            bisection.split(step)
            continue
        seen.extend(range(step.start, step.stop))
        if step.start in deadly:
            found.add(step.start)
    assert seen == list(range(items)), "every item once, in order"
    return found, jobs


def test_exactly_the_deadly_items_are_found() -> None:
    for items in range(1, 9):
        for size in range(items + 1):
            for deadly in itertools.combinations(range(items), size):
                assert run_bisection(items, set(deadly))[0] == set(deadly)


def test_one_culprit_in_a_thousand_takes_about_twenty_jobs() -> None:
    assert run_bisection(1000, {617})[1] <= 21
    assert run_bisection(1000, set())[1] == 1


def test_quarantined_items_are_left_out() -> None:
    bisection = Bisection([0, 1, 3, 6, 7])
    steps = iter(bisection.next, None)
    assert [(step.start, step.stop) for step in steps if step] == [(0, 2), (3, 4), (6, 8)]


def test_strikes_while_bisecting() -> None:
    bisection = Bisection(range(3))
    whole = bisection.next()
    assert whole is not None
    assert whole.terms(Terms()) == Terms(strikes=2, single=False)
    bisection.split(whole)
    first, second = bisection.next(), bisection.next()
    assert first is not None and second is not None
    assert first.terms(Terms()) == Terms(strikes=2, single=True, bisecting=True)
    assert second.terms(Terms()) == Terms(strikes=1, single=False, bisecting=True)


def opened() -> Breaker:
    breaker = Breaker()
    for at in range(5):
        breaker.count(at)
        assert breaker.open_for(at) is None
    breaker.count(5)
    assert breaker.open_for(7) == 3
    return breaker


def test_deaths_far_apart_do_not_open_the_breaker() -> None:
    breaker = Breaker()
    for number in range(100):
        breaker.count(number * 3)
    assert breaker.state == "closed"


def test_an_open_breaker_admits_one_trial_then_closes() -> None:
    breaker = opened()
    assert breaker.admit(6, quiet=True) == 4
    assert breaker.admit(10, quiet=False) == 5, "a trial waits for running jobs"
    assert breaker.admit(10, quiet=True) is None
    assert breaker.state == "half_open"
    assert breaker.admit(10, quiet=False) is not None
    breaker.succeeded()
    assert breaker.state == "closed"
    assert breaker.admit(10, quiet=False) is None


def test_a_failed_trial_doubles_the_cooldown() -> None:
    breaker, now = opened(), 5.0
    for wait in (5, 10, 20, 40, 60, 60):
        assert breaker.admit(now + wait - 1, quiet=True) is not None
        now += wait
        assert breaker.admit(now, quiet=True) is None
        breaker.count(now)
        assert breaker.state == "open"


def test_the_restart_delay_doubles_and_starts_over() -> None:
    backoff, now = Backoff(), 1.0
    delays = [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30]
    for delay in delays:
        backoff.count(now, jitter=0.5)
        assert backoff.not_before - now == pytest.approx(delay)
        now += 31
    backoff.succeeded()
    backoff.count(now, jitter=0.5)
    assert backoff.not_before == now
    backoff.count(now + 60, jitter=0.5)
    assert backoff.not_before == now + 60


POOL = Staff(workers=2, spares=1, prestart=True, awake=True)
LAZY = replace(POOL, prestart=False)


@pytest.mark.parametrize(
    ("staff", "start", "stop"),
    [
        (POOL, 3, 0),
        (replace(POOL, starting=3), 0, 0),
        (replace(POOL, busy=1, idle=1), 1, 0),
        (replace(POOL, awake=False, idle=3), 0, 3),
        (replace(POOL, awake=False, idle=2, busy=1), 0, 2),
        (LAZY, 1, 0),
        (replace(LAZY, awake=False), 0, 0),
        (replace(LAZY, waiting=5), 3, 0),
        (replace(LAZY, idle=2, busy=1), 0, 0),
        # One more for the job that needs a fresh one, and one less afterwards.
        (replace(POOL, idle=3, waiting=1, suspects=1), 1, 0),
        (replace(POOL, idle=3, fresh=1, waiting=1, suspects=1), 0, 0),
        (replace(POOL, idle=4), 0, 1),
    ],
)
def test_how_many_workers_there_should_be(staff: Staff, start: int, stop: int) -> None:
    assert (to_start(staff), to_stop(staff)) == (start, stop)
