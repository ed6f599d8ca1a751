"""Hold many debates concurrently. Each continues as soon as its own round is complete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext

from debate.concurrency import run_async, stops_released, together
from debate.config import DebateConfig
from debate.early_stop import Agreed, same_as_written
from debate.hold import debate_in_seat, debate_name
from debate.policy import seat_at
from debate.seeds import debate_seed
from debate.types import Debate, Policy, Problem


def run_debates(
    problems: Sequence[Problem],
    policy: Policy,
    config: DebateConfig,
    *,
    seed: int,
    max_live: int | None = None,
    summarizer: Policy | None = None,
    agreed: Agreed = same_as_written,
    numbers: Sequence[int] | None = None,
    held: Mapping[int, Debate] | None = None,
    on_debate: Callable[[int, Debate], None] | None = None,
    within: AbstractContextManager[object] | None = None,
) -> list[Debate]:
    """Hold one debate per problem, concurrently, and return them in the order of the problems.

    For K debates of one problem, list it K times: each debate's seed comes from ``seed``, its number and the
    problem's id. ``numbers`` are the debates' numbers, all different; None uses their indices in the list.
    Each debate continues once its own round is complete. ``max_live`` limits how many are open at the same
    time. ``summarizer`` and ``agreed`` are as in ``hold_debate`` and shared by all debates. If an event loop
    already runs, as in notebooks, this function uses a thread.

    ``held``: debates that were held before, by index; they are not held again. ``on_debate`` is called with
    the index and the debate as each one ends, in order of completion. ``within`` is entered and left inside
    the event loop, because an exception that a signal raises while the loop is created or closed would leave
    the loop half closed.

    The first exception of the policy cancels the other debates and is raised here.
    """
    if isinstance(problems, Problem):
        raise ValueError("problems: must be a list of problems, got one Problem; write [problem]")
    if max_live is not None and max_live < 1:
        raise ValueError(f"max_live must be at least 1 or None, got {max_live}")
    debates, own_numbers = dict(held or {}), numbers or range(len(problems))
    missing = [index for index in range(len(problems)) if index not in debates]

    async def hold(index: int) -> None:
        problem, number = problems[index], own_numbers[index]
        own_seed, name = debate_seed(seed, number, problem), debate_name(number, problem.id)
        debates[index] = await debate_in_seat(
            problem, policy, config, own_seed, name, summarizer or policy, agreed
        )
        if on_debate is not None:
            on_debate(index, debates[index])

    async def hold_all() -> None:
        with within or nullcontext():
            await _hold_all(missing, hold, policy, seats=min(len(missing), max_live or len(missing)))

    run_async(hold_all())
    return [debates[index] for index in range(len(problems))]


async def _hold_all(
    missing: Sequence[int], hold: Callable[[int], Awaitable[None]], policy: Policy, *, seats: int
) -> None:
    """Hold the missing debates, at most ``seats`` at a time.

    A seat starts the next debate when its debate has ended.
    """
    waiting = iter(missing)

    async def keep_seat(seat: ExitStack) -> None:
        with seat:
            for index in waiting:
                await hold(index)

    with stops_released(), ExitStack() as all_seats:  # all seats are entered before the first request
        taken = [all_seats.enter_context(taken_seat(policy)) for _ in range(seats)]
        await together([keep_seat(seat) for seat in taken])


def taken_seat(policy: Policy) -> ExitStack:
    """Enter a seat of a policy, and return the exit stack that leaves it. Leaving it twice is allowed."""
    with ExitStack() as stack:
        stack.enter_context(seat_at(policy))
        return stack.pop_all()
