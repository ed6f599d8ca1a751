"""Decide which turns a prompt shows, which parts of them are public, and which turns are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import UNSET

from debate.config import DebateConfig
from debate.parsing import last_boxed
from debate.parsing.sections import find_sections
from debate.parsing.tags import without_private
from debate.programs import public_part
from debate.prompting.escape import clean
from debate.protocols import GAMES
from debate.types import Completion, Criticism, FailureReason, ParsedTurn, Span, Turn, TurnId


def rounds_shown(round_: int, history_rounds: int) -> range:
    """Return the rounds whose turns a prompt of ``round_`` shows: the last K, all (-1) or none (0).

    >>> [list(rounds_shown(3, k)) for k in (-1, 0, 1, 2)]
    [[0, 1, 2], [], [2], [1, 2]]
    """
    return range(0 if history_rounds < 0 else max(0, round_ - history_rounds), round_)


PROPOSER, CRITIC = 0, 1
"""The agents that argue in a game (``protocols.GAMES``). All other agents judge."""


def waves(config: DebateConfig, round_: int) -> list[list[int]]:
    """Return the agents that speak in a round, in waves: the agents of a later wave read the earlier ones.

    >>> game = DebateConfig(protocol="zero_sum", num_agents=4, num_rounds=1)
    >>> waves(game, 0), waves(game, 1), waves(DebateConfig(num_agents=2), 0)
    ([[0], [1]], [[2, 3]], [[0, 1]])
    """
    agents = list(range(config.num_agents))
    if config.protocol not in GAMES:
        return [agents]
    return [agents[CRITIC + 1 :]] if round_ == config.num_rounds else [[PROPOSER], [CRITIC]]


def speakers(config: DebateConfig, round_: int) -> list[int]:
    """Return the agents that speak in a round."""
    return [agent for wave in waves(config, round_) for agent in wave]


def reads(config: DebateConfig, reader: TurnId, author: TurnId) -> bool:
    """Return whether a turn may read another turn. In a game, only the agents that argue are read."""
    if config.protocol not in GAMES:
        return True
    argued = author.agent in (PROPOSER, CRITIC)
    return argued and (author.round < reader.round or (reader.agent, author.agent) == (CRITIC, PROPOSER))


def groups_shown(config: DebateConfig, round_: int, agent: int = PROPOSER) -> list[range]:
    """Return the rounds that a prompt of ``round_`` shows, in groups that are cut together.

    In a critique, history is counted in rounds of solutions; each is grouped with the round of criticism
    after it. In a game the critic is shown its own round, which the proposer began.

    >>> critique = DebateConfig(protocol="critique", num_agents=4, num_rounds=3)
    >>> [[list(group) for group in groups_shown(critique, round_)] for round_ in range(4)]
    [[], [[0]], [[0, 1]], [[2]]]
    """
    if config.protocol in GAMES and (round_, agent) == (0, CRITIC):
        return [range(1)]
    if config.protocol != "critique":
        return [range(number, number + 1) for number in rounds_shown(round_, config.history_rounds)]
    solved = range(0, round_, 2)
    kept = solved if config.history_rounds < 0 else solved[-config.history_rounds :]
    return [range(start, min(start + 2, round_)) for start in kept]


def holds_criticism(config: DebateConfig, round_: int) -> bool:
    """Return whether a round holds criticism instead of solutions.

    >>> critique = DebateConfig(protocol="critique", num_rounds=5)
    >>> [round_ for round_ in range(-1, 6) if holds_criticism(critique, round_)]
    [1, 3]
    """
    return config.protocol == "critique" and round_ % 2 == 1 and 0 < round_ < config.num_rounds


def holds_solutions(config: DebateConfig, round_: int) -> bool:
    """Return whether a round holds solutions, and not criticism or the final ballot."""
    return round_ < config.num_rounds and not holds_criticism(config, round_)


def solved_before(config: DebateConfig, round_: int) -> int:
    """Return the previous round of solutions. The result is below 0 if there is none."""
    return round_ - (2 if config.protocol == "critique" else 1)


def holds_votes(config: DebateConfig, round_: int) -> bool:
    """Return whether agents may compare in a round: from the second round on, but not in a revision."""
    return round_ > 0 and (config.protocol != "critique" or not holds_solutions(config, round_))


def rounds_held(config: DebateConfig) -> int:
    """Return how many rounds a debate has: R, plus the final ballot if it is on and shows someone a pair.

    >>> [rounds_held(DebateConfig(num_agents=n, num_rounds=2)) for n in (1, 2, 3)]
    [2, 2, 3]
    """
    sides = config.num_agents if config.judge_own else config.num_agents - 1
    due = config.num_agents >= 2 and sides >= 2 and config.history_rounds != 0
    return config.num_rounds + (config.final_ballot and due)


def asks_pairs(config: DebateConfig, round_: int) -> bool:
    """Return whether each turn of a round judges one pair, as in the final ballot by Swiss pairing.

    >>> config = DebateConfig(num_agents=5, num_rounds=2, ballot="swiss")
    >>> [asks_pairs(config, round_) for round_ in range(3)]
    [False, False, True]
    """
    return config.ballot == "swiss" and round_ == config.num_rounds


def reads_untagged(config: DebateConfig, round_: int) -> bool:
    """Return whether a reply without tags counts as a solution.

    It does if no agent reads it as part of a debate, or in round 0 if ``untagged`` is set.

    >>> [reads_untagged(DebateConfig(num_agents=n), 0) for n in (1, 3)]
    [True, False]
    """
    alone = config.num_agents == 1 or rounds_held(config) == 1
    return alone or (config.untagged and round_ == 0)


def comparable(shown: Sequence[TurnId], agent: int, *, judge_own: bool) -> tuple[TurnId, ...]:
    """Return the newest shown turn of each agent whose work ``agent`` may compare, in the order shown.

    >>> seen = (TurnId(1, 0), TurnId(0, 0), TurnId(1, 1), TurnId(0, 1))
    >>> comparable(seen, 0, judge_own=False)
    (TurnId(agent=1, round=1),)
    """
    newest: dict[int, int] = {}
    for turn in shown:
        newest[turn.agent] = max(turn.round, newest.get(turn.agent, turn.round))
    kept = (t for t in shown if newest[t.agent] == t.round and (judge_own or t.agent != agent))
    return tuple(dict.fromkeys(kept))


@dataclass(frozen=True, slots=True)
class PublicTurn:
    """The parts of a turn that others may see, not yet escaped. A part is None if it is unreadable.

    Comparisons, thinking, the persona and the agent's number are left out. ``answer`` is parsed from the
    public solution: it is kept when the text is cut, so it must not show anything private. ``critic``: the
    turn is criticism, which is stored in ``evaluation``.
    """

    id: TurnId
    handle: str
    solution: str | None
    evaluation: str | None = None
    answer: str | None = None
    critic: bool = False


def public_turn(turn: Turn, *, strip: bool = True) -> PublicTurn:
    """Return the solution and evaluation of a turn, unless the reply ended within them.

    An unclosed section that ends at the next tag can be read; one cut off by the reply's end cannot.
    ``strip`` trims the ends. In a turn of criticism, only text about a target can be read.
    """
    text, stated = turn.completion.text, turn.completion.stated
    if turn.parsed.criticisms is not UNSET:
        return _public_criticism(turn, turn.parsed.criticisms)

    def inside(section: str, span: Span | None) -> str | None:
        if span is None or cut_off(text, turn.parsed, section, span):
            return None
        public = _public_text(turn.completion, span)
        return (public.strip() if strip else public) if public.strip() else None

    span = turn.parsed.solution
    solution = inside("solution", span)
    answer = last_boxed(without_private(clean(span.of(stated)))) if span and solution is not None else None
    return PublicTurn(
        turn.id,
        turn.handle,
        solution,
        inside("evaluation", turn.parsed.evaluation),
        answer,
    )


def _public_text(completion: Completion, span: Span) -> str:
    """Return the public text of a part of a reply. Outputs that no program wrote are labelled as claimed."""
    if completion.calls is UNSET:
        return without_private(clean(span.of(completion.text)))
    return public_part(completion.text, span, completion.calls)


def _public_criticism(turn: Turn, criticisms: Sequence[Criticism]) -> PublicTurn:
    """Return a turn of criticism with one line per criticism, or None as its evaluation if there are none.

    A line break within a criticism becomes a space. Otherwise the next line could pass for another criticism.
    """
    said = [(one.target, _public_text(turn.completion, one.span).split()) for one in criticisms]
    lines = [f"{target}: {' '.join(words)}" for target, words in said if words]
    return PublicTurn(turn.id, turn.handle, None, "\n".join(lines) or None, critic=True)


def whole_solution(text: str, parsed: ParsedTurn) -> str | None:
    """Return the trimmed solution of a reply as written. None if it is absent, empty or cut off."""
    span = parsed.solution
    if span is None or cut_off(text, parsed, "solution", span):
        return None
    return span.of(text).strip() or None


def cut_off(text: str, parsed: ParsedTurn, section: str, span: Span) -> bool:
    """Return whether the reply ended within the section."""
    unfinished = {f.detail for f in parsed.failures if f.reason is FailureReason.UNCLOSED_SECTION}
    return section in unfinished and span.end >= len(text)


def public_summary(text: str, *, in_thinking: bool = False) -> str:
    """Return the public part of a summarizer's reply, without thinking and comparison blocks.

    >>> public_summary("<think>K7?</think> Q2 finds 4. <comparison>K7 > Q2</comparison>")
    'Q2 finds 4.'
    """
    seen = clean(text)
    thinking = find_sections(seen, in_thinking=in_thinking).thinking
    return without_private(seen[thinking.end if thinking else 0 :]).strip()
