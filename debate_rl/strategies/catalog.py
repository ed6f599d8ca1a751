"""All strategies by name, and what each needs of the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from debate.settings import did_you_mean
from debate_rl.strategies.best_of_n import best_of_n
from debate_rl.strategies.debate_majority import debate_majority
from debate_rl.strategies.debate_winner import debate_winner
from debate_rl.strategies.genselect import genselect
from debate_rl.strategies.genselect_pairs import genselect_pairs
from debate_rl.strategies.greedy import greedy
from debate_rl.strategies.holding import need_debate
from debate_rl.strategies.judge_vote import judge_vote
from debate_rl.strategies.judging import check_judge
from debate_rl.strategies.logprob_vote import logprob_vote
from debate_rl.strategies.majority import majority
from debate_rl.strategies.selecting import check_selection
from debate_rl.strategies.self_correction import need_revisions, self_correction
from debate_rl.strategies.swiss import swiss
from debate_rl.strategies.tail_vote import tail_vote
from debate_rl.strategies.tir import tir
from debate_rl.strategies.tir_majority import tir_majority
from debate_rl.strategies.types import Asked, Strategy
from debate_rl.strategies.work import need


@dataclass(frozen=True, slots=True)
class Entry:
    """A strategy and what it is: whether a judge ``compares``, it holds a debate, or programs are run.

    ``sampled``: whether the number of samples says how many solutions it asks for. ``revises``: whether as
    many agents as in a debate work alone.
    """

    run: Strategy
    says: str
    sampled: bool = True
    compares: bool = False
    debates: bool = False
    tools: bool = False
    revises: bool = False


STRATEGIES: Mapping[str, Entry] = MappingProxyType(
    {
        "greedy": Entry(greedy, "one solution at temperature 0", sampled=False),
        "majority": Entry(majority, "the most frequent answer of k solutions"),
        "logprob_vote": Entry(logprob_vote, "a vote weighted by exp(mean log p) of each solution's tokens"),
        "tail_vote": Entry(tail_vote, "a vote weighted by exp(-entropy) of each solution's tail"),
        "judge_vote": Entry(judge_vote, "a vote weighted by a judge's blind ballots", compares=True),
        "best_of_n": Entry(
            best_of_n, "the solution that a judge's blind ballots score highest", compares=True
        ),
        "genselect": Entry(genselect, "the best of a list, named by the model", compares=True),
        "genselect_pairs": Entry(genselect_pairs, "a knock-out of pairs, by the model", compares=True),
        "swiss": Entry(swiss, "a Swiss tournament by a judge's blind ballots", compares=True),
        "self_correction": Entry(
            self_correction,
            "the majority of agents that each revise their own solution",
            sampled=False,
            revises=True,
        ),
        "debate_winner": Entry(
            debate_winner, "the winner of one debate by its votes", sampled=False, debates=True
        ),
        "debate_majority": Entry(
            debate_majority, "the last round's majority of one debate", sampled=False, debates=True
        ),
        "tir": Entry(tir, "one solution at temperature 0 that runs programs", sampled=False, tools=True),
        "tir_majority": Entry(
            tir_majority, "the most frequent answer of k solutions that run programs", tools=True
        ),
    }
)


def entry_named(name: str) -> Entry:
    """Return the strategy of a name; ValueError with the nearest one where there is none."""
    if name not in STRATEGIES:
        valid = ", ".join(STRATEGIES)
        raise ValueError(
            f"--strategy {name}: is not known; {did_you_mean(name, STRATEGIES, f'valid: {valid}')}"
        )
    return STRATEGIES[name]


def check_asked(name: str, asked: Asked) -> None:
    """ValueError, before anything is sampled, for what a strategy cannot do: protocol, judge, budget."""
    entry = entry_named(name)
    if asked.samples < 1:
        raise ValueError(f"--samples {asked.samples}: needs 1 or more")
    if entry.debates:
        if asked.protocol.num_agents == 1:
            raise ValueError(f"--strategy {name}: debate.num_agents = 1 holds no debate; use majority")
        need_debate(asked)
    elif entry.revises:
        need_revisions(asked)
    elif not entry.compares:
        need(asked, 1, "one solution")
    elif name in ("genselect", "genselect_pairs"):
        check_selection(asked.judged_by.protocol)
        need(asked, 1, "a solution and a selection", comparisons=1)
    else:
        check_judge(asked.judged_by.protocol)
        need(asked, 1, "a solution and a ballot", comparisons=1)
