"""Hold debates: one readable function of the protocol, and many of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from debate.config import DebateConfig
from debate.fitting import Entry, View, entry, room_for_prompt
from debate.history import view
from debate.optional import opens_thinking, seat_at
from debate.parsing import parse_turn
from debate.seeds import derive_seed
from debate.showing import public_part, rounds_held, whole_solution
from debate.summary import summarize
from debate.table import Table, set_table
from debate.tasks import run_async, stops_released, together
from debate.types import (
    Completion,
    Debate,
    FailureReason,
    Kind,
    ParsedTurn,
    Policy,
    Problem,
    SampleRequest,
    Summary,
    Turn,
    TurnId,
    Vote,
)


async def hold_debate(
    problem: Problem,
    policy: Policy,
    config: DebateConfig,
    *,
    seed: int,
    name: str | None = None,
    summarizer: Policy | None = None,
) -> Debate:
    """Hold one debate and return it with every turn and every vote as cast.

    The result depends on the arguments alone if the policy's replies depend on the requests' seeds alone.
    ``name`` is what requests call the debate; it must be unique among debates that share the policy at a
    time. ``summarizer`` writes the summaries if ``config.summary`` wants any; None is the policy itself. An
    exception of a policy ends the debate and is raised here; PromptTooLongError when a prompt can not be cut
    to fit.
    """
    with seat_at(policy), stops_released():
        called = name or debate_name(seed, problem.id)
        return await _debate(problem, policy, config, seed, called, summarizer or policy)


async def _debate(
    problem: Problem, policy: Policy, config: DebateConfig, seed: int, name: str, summarizer: Policy
) -> Debate:
    """Hold one debate from an entered seat: R rounds of solutions, then the ballot if one is due."""
    table, room, version = set_table(problem, config, seed), room_for_prompt(policy, config), policy.version
    turns: list[Turn] = []
    summaries: list[Summary] = []
    past: list[list[Entry]] = []  # what others may see, (round, N)
    for round_ in range(rounds_held(config)):
        summary = await summarize(table, past, round_, summarizer, seed=seed, name=name)
        summaries += [summary] if summary else []
        seats = range(config.num_agents)
        views = [view(table, past, agent, round_, room, summary=summary) for agent in seats]
        requests = [
            _request(table, seen, TurnId(agent, round_), seed, name) for agent, seen in enumerate(views)
        ]
        replies = await together([policy.sample(request) for request in requests])
        spoken = [
            read_turn(table, request, seen, reply, in_thinking=opens_thinking(policy, request.messages))
            for request, seen, reply in zip(requests, views, replies, strict=True)
        ]
        turns += spoken
        past.append([entry(table.texts, public_part(turn, strip=table.texts.strip)) for turn in spoken])
    votes = tuple(vote for turn in turns for vote in votes_of(turn, table.handles))
    return Debate(problem, table.personas, tuple(turns), votes, seed, version, config, tuple(summaries))


def _request(table: Table, seen: View, turn: TurnId, seed: int, name: str) -> SampleRequest:
    """Return the request of one turn, with the persona's own temperature (D12) and a seed of its own."""
    config = table.config
    return SampleRequest(
        messages=seen.messages,
        temperature=table.personas[turn.agent].temperature,
        max_tokens=config.max_tokens,
        stop=(*config.stop, *seen.stop),
        seed=derive_seed(seed, "sample", turn.round, turn.agent),
        debate=name,
        turn=turn,
        thinking_tokens=config.thinking_tokens,
    )


def read_turn(
    table: Table, request: SampleRequest, seen: View, completion: Completion, *, in_thinking: bool = False
) -> Turn:
    """Return the turn that a reply makes, parsed with the labels of its debate."""
    handle = table.handles[request.turn.agent]
    ballot = seen.task == "ballot"
    parsed = read_reply(
        completion.text,
        handles=table.handles,
        own=None if table.config.judge_own else handle,
        due=seen.due,
        in_thinking=in_thinking,
        ballot=ballot,
        kind=table.problem.kind,
    )
    return Turn(
        id=request.turn,
        handle=handle,
        shown=seen.shown,
        completion=completion,
        parsed=parsed,
        compared=seen.compared,
        cut=seen.cut,
        ballot=ballot,
    )


def read_reply(
    text: str,
    *,
    handles: Iterable[str],
    own: str | None,
    due: bool,
    in_thinking: bool,
    ballot: bool,
    kind: Kind,
) -> ParsedTurn:
    """Return what ``parse_turn`` reads from a reply, as the problem's kind and the final ballot want it."""
    parsed = parse_turn(text, handles=handles, own=own, due=due, in_thinking=in_thinking)
    if kind == "instructions":
        parsed = replace(parsed, answer=whole_solution(text, parsed))
    return _without_missing_solution(parsed) if ballot else parsed


def _without_missing_solution(parsed: ParsedTurn) -> ParsedTurn:
    """Return the parsed ballot without the report that it has no solution: none was asked for."""
    kept = tuple(f for f in parsed.failures if (f.reason, f.detail) != (FailureReason.MISSING, "solution"))
    return parsed if len(kept) == len(parsed.failures) else replace(parsed, failures=kept)


def votes_of(turn: Turn, handles: Sequence[str]) -> Iterator[Vote]:
    """Yield the votes that a turn cast on turns it was shown, repeats included.

    A handle means its agent's newest shown turn, and credit goes to exactly that turn (D1).
    """
    meant = {handles[target.agent].upper(): target for target in turn.compared}
    for ballot in turn.parsed.ballots:
        left, right = meant.get(ballot.left.upper()), meant.get(ballot.right.upper())
        if left and right:
            yield Vote(turn.id, left, right, ballot.outcome, ballot.span)


def run_debates(
    problems: Sequence[Problem],
    policy: Policy,
    config: DebateConfig,
    *,
    seed: int,
    max_live: int | None = None,
    summarizer: Policy | None = None,
    held: Mapping[int, Debate] | None = None,
    on_debate: Callable[[int, Debate], None] | None = None,
) -> list[Debate]:
    """Hold one debate for each problem of the list, at the same time, and return them in the list's order.

    For K debates of one problem, list it K times: each debate's seed comes from ``seed``, its place in the
    list and the problem's id. Every debate goes on as soon as its own round is complete; ``max_live`` bounds
    how many are open at a time, and ``summarizer`` is as in ``hold_debate``, one for all. Works where an
    event loop already runs, as in notebooks, by using a thread.
    ``held``: debates by their places in the list that were held before and are not held again;
    ``on_debate`` is told place and debate as each ends, in the order in which they do.
    The first exception of the policy cancels the other debates and is raised here.
    """
    if max_live is not None and max_live < 1:
        raise ValueError(f"max_live must be at least 1 or None, got {max_live}")

    return run_async(
        hold_debates(
            problems,
            policy,
            config,
            seed=seed,
            max_live=max_live,
            summarizer=summarizer,
            held=held,
            on_debate=on_debate,
        )
    )


async def hold_debates(
    problems: Sequence[Problem],
    policy: Policy,
    config: DebateConfig,
    *,
    seed: int,
    max_live: int | None = None,
    summarizer: Policy | None = None,
    held: Mapping[int, Debate] | None = None,
    on_debate: Callable[[int, Debate], None] | None = None,
) -> list[Debate]:
    """Do what ``run_debates`` does, inside an event loop."""
    found = dict(held or {})
    places = [place for place in range(len(problems)) if place not in found]
    waiting = iter(places)

    async def keep_seat(seat: ExitStack) -> None:
        """Hold debates from one seat until none is waiting."""
        with seat:
            for place in waiting:
                problem = problems[place]
                own_seed, name = place_seed(seed, place, problem), debate_name(place, problem.id)
                found[place] = await _debate(problem, policy, config, own_seed, name, summarizer or policy)
                if on_debate is not None:
                    on_debate(place, found[place])

    with stops_released(), ExitStack() as all_seats:  # every seat is taken before the first request
        count = min(len(places), max_live or len(places))
        seats = [all_seats.enter_context(_taken(policy)) for _ in range(count)]
        await together([keep_seat(seat) for seat in seats])
    return [found[place] for place in range(len(problems))]


def place_seed(seed: int, place: int, problem: Problem) -> int:
    """Return the seed of the debate at a place of the list that ``run_debates`` was given."""
    return derive_seed(seed, "debate", place, problem.id)


def debate_name(number: int, problem_id: str) -> str:
    """Return what a debate is called in requests: a number, which orders them, and the problem's id.

    >>> debate_name(12, "gsm8k/7")
    '000012:gsm8k/7'
    """
    return f"{number:06d}:{problem_id}"


def _taken(policy: Policy) -> ExitStack:
    """Return an entered seat; leaving it twice is harmless."""
    with ExitStack() as stack:
        stack.enter_context(seat_at(policy))
        return stack.pop_all()
