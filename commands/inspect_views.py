"""Actions of ``debate inspect`` that explain and compare: why, same, fixture, replays."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from debate.types import TurnId
from transcripts import RunStore

if TYPE_CHECKING:
    from inspector.plain import Printer

VIEWS = ("why", "same", "fixture", "replays")


def act_view(
    action: str, rest: Sequence[str], store: RunStore, paper: Printer, *, turn: str, limit: int, as_json: bool
) -> None:
    """Do one of the actions ``VIEWS``; ValueError says how it is written."""
    if action == "why":
        _why(rest, store, paper, turn, as_json=as_json)
    elif action == "same":
        _same(rest, store, paper, limit, as_json=as_json)
    elif action == "fixture":
        _fixture(rest, store, paper, as_json=as_json)
    else:
        _replays(rest, store, paper, as_json=as_json)


def _why(rest: Sequence[str], store: RunStore, paper: Printer, turn: str, *, as_json: bool) -> None:
    from inspector.plain.explaining import print_why
    from inspector.views.reward import config_of, why

    if len(rest) != 1:
        raise ValueError("why: name one debate by step and place, and a turn, as in why 12.3 --turn 0.1")
    config, note = config_of(store.run)
    print_why(why(store, config, rest[0], turn_of(turn), note=note), paper, as_json=as_json)


def turn_of(text: str) -> TurnId:
    """Return the turn that --turn names.

    >>> turn_of("2.1")
    TurnId(agent=2, round=1)
    """
    agent, _, round_ = text.partition(".")
    if not all(part.isdecimal() and len(part) < 10 for part in (agent, round_)):
        raise ValueError(f"--turn {text!r}: write AGENT.ROUND, both from 0, the final ballot last")
    return TurnId(int(agent), int(round_))


def _same(rest: Sequence[str], store: RunStore, paper: Printer, limit: int, *, as_json: bool) -> None:
    from inspector.plain.comparing import print_across, print_comparison
    from inspector.views.across import across, compare, read

    if len(rest) not in (1, 3):
        raise ValueError("same: name a problem, and perhaps two of its debates: same PROBLEM [ID ID]")
    if len(rest) == 1:
        print_across(across(store, rest[0], limit=limit), paper, as_json=as_json)
        return
    before, after = (read(store, ref) for ref in rest[1:])
    for ref, record in zip(rest[1:], (before, after), strict=True):
        if record.debate.problem.id != rest[0]:
            raise ValueError(f"same: debate {ref} is of problem {record.debate.problem.id}")
    print_comparison(compare(before, after, (rest[1], rest[2])), paper, as_json=as_json)


def _fixture(rest: Sequence[str], store: RunStore, paper: Printer, *, as_json: bool) -> None:
    from inspector.views.across import read
    from inspector.views.fixture import differences, load_fixture, save_fixture
    from inspector.views.reward import config_of

    if len(rest) != 2:
        raise ValueError("fixture: name a debate and a new file, as in fixture 12.3 debate.json")
    ref, path = rest[0], Path(rest[1])
    config, note = config_of(store.run)
    test = save_fixture(path, read(store, ref), config, source=f"{store.run.resolve().name} {ref}")
    found = differences(load_fixture(path))
    if as_json:
        paper.json({"schema": 1, "file": str(path), "test": test, "differences": found})
        return
    for line in [f"{note}; it was paid by the default scheme"] if note else []:
        print(f"debate: note: {line}", file=sys.stderr)
    if found:
        told = f"{len(found)} differences between what is stored and today's reading: {found[0]}"
        print(f"debate: note: {told}", file=sys.stderr)
    paper.line(f"# {path}; a test of it, to stand in the same folder:")
    paper.line(test.rstrip("\n"))


def _replays(rest: Sequence[str], store: RunStore, paper: Printer, *, as_json: bool) -> None:
    from inspector.plain.comparing import print_debate_replay, print_replay, print_replays
    from inspector.views.replays import read_replay, replays

    if not rest:
        print_replays(replays(store.run), paper, as_json=as_json)
    elif len(rest) == 1:
        print_replay(read_replay(store.run, rest[0]), paper, as_json=as_json)
    elif len(rest) == 2:
        found = read_replay(store.run, rest[0]).debate(rest[1])
        if found is None:
            raise ValueError(f"replays: {rest[0]} holds no debate {rest[1]!r}")
        print_debate_replay(found, paper, as_json=as_json)
    else:
        raise ValueError("replays: name a replay, and perhaps one debate: replays [NAME [ID]]")
