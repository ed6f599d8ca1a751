"""Fixed pairs of a right and a wrong solution, plain and under attack, and what a judge says of them.

A judge always sits with two others, whatever the number of agents, and sees its own earlier solution too. It
replies at temperature 0, so that what differs from one evaluation to the next is the judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from debate import DebateConfig, Policy, Problem, run_debates
from debate.concurrency import run_async
from debate.config import SummaryConfig
from debate.parsing import last_boxed
from debate.prompting.fitting import context_budget
from debate.prompting.seating import prompts_of, seat_debate
from debate.prompting.shown import public_turn
from debate.protocols import GAMES
from debate.seeds import derive_seed
from debate.types import WHOLE_RESPONSE, WITHOUT_TRUTH
from debate_rl.evaluation.grading import Graded, answer_in, graded
from debate_rl.metrics.judge_benchmark import (
    Preferred,
    SeatedPair,
    family_solution,
    peers_of,
    preferred_of,
    sampled,
    seated_pair,
)
from debate_rl.metrics.persuaders import PERSUADERS, WORDS, Phrases, of_family, persuaded
from debate_rl.tracking.judge_pairs import ORDER, PLAIN, JudgePair, Judgment
from envs import Environment
from envs.families import FAMILIES
from envs.types import Mode
from rewards.truth import is_right

LIVE = 64
"""Problems that are solved at a time until there are pairs enough."""


@dataclass(frozen=True, slots=True)
class PairPlan:
    """What pairs are made of. ``family``: the synthetic one of the problems, "" for any other data.

    ``tiny``: the judge is a small model built here, which can read nothing but the family's own texts.
    """

    environment: Environment
    problems: Sequence[Problem]
    config: DebateConfig
    count: int
    seed: int
    mode: Mode = "boxed"
    family: str = ""
    tiny: bool = False


def make_pairs(plan: PairPlan, policy: Policy) -> list[JudgePair]:
    """Return at most ``count`` pairs, of different problems: written ones of a family, else the policy's own.

    Of any other data set a pair is a right and a wrong solution by the policy to one problem; problems that
    it solves always, or never, give none.
    """
    solved = _written(plan) if plan.family else _said(plan, policy)
    pairs: list[JudgePair] = []
    for problem, right, wrong, own in solved:
        if len(pairs) == plan.count:
            break
        rng = Random(derive_seed(plan.seed, "persuaders", problem.id))
        attacked = _attacked(plan, problem, wrong, rng)
        pairs.append(JudgePair(problem.id, problem.question, right, wrong, own, attacked))
    return pairs


def _written(plan: PairPlan) -> Iterator[tuple[Problem, str, str, str]]:
    for problem in plan.problems:
        rng = Random(derive_seed(plan.seed, "pair", problem.id))
        write = partial(family_solution, plan.family, problem, rng)
        yield problem, write(right=True), write(right=False), write(right=rng.random() < 0.5)


def _said(plan: PairPlan, policy: Policy) -> Iterator[tuple[Problem, str, str, str]]:
    config = of_three(plan.config).one_round()
    strip = prompts_of(config).strip
    usable = [one for one in plan.problems if one.kind not in WITHOUT_TRUTH | WHOLE_RESPONSE]
    for start in range(0, len(usable), LIVE):
        seed = derive_seed(plan.seed, "solutions", start)
        for debate in run_debates(usable[start : start + LIVE], policy, config, seed=seed):
            done = graded(plan.environment, debate, plan.mode)
            good, bad = (_solutions(done, strip=strip, right=right) for right in (True, False))
            if good and bad:
                rng = Random(derive_seed(plan.seed, "own", debate.problem.id))
                yield debate.problem, good[0], bad[0], rng.choice([*good, *bad])


def _solutions(done: Graded, *, strip: bool, right: bool) -> list[str]:
    """Return what others are shown of the solutions of a debate that are right, or that are wrong."""
    turns = [turn for turn in done.debate.turns if is_right(turn.id, done.correct) is right]
    return [text for turn in turns if (text := public_turn(turn, strip=strip).solution)]


def _attacked(plan: PairPlan, problem: Problem, wrong: str, rng: Random) -> dict[str, str]:
    def read(text: str) -> object:
        return last_boxed(text), answer_in(plan.environment, problem, text, plan.mode)

    phrases = _phrases(plan, problem, wrong)
    return {name: persuaded(name, wrong, phrases, read, rng) for name in PERSUADERS}


def _phrases(plan: PairPlan, problem: Problem, wrong: str) -> Phrases:
    if not (plan.family and plan.tiny):
        return WORDS
    return of_family(FAMILIES[plan.family].write_check(problem, wrong).replace(" wrong", " right"))


def of_three(config: DebateConfig) -> DebateConfig:
    """Return the protocol for a judge and two others, whose solutions it is shown as they are.

    In a game not everybody judges, so it is a debate for this.
    """
    changes = {"num_agents": 3, "by_level": (), "history_rounds": 1, "conversation": False}
    changes |= {"protocol": "debate"} if config.protocol in GAMES else {}
    whole = {"summary": SummaryConfig(), "min_rounds": None, "order": "per_debate"}
    return config.model_copy(update=changes | whole)


def judge_pairs(
    policy: Policy, pairs: Sequence[JudgePair], problems: Sequence[Problem], config: DebateConfig, seed: int
) -> list[Judgment]:
    """Return what the policy says of each pair, plain and attacked, at temperature 0; of equal texts once.

    ``problems``: those of the pairs, among others; nothing is said of a pair whose problem is not there. The
    right side is shown first in every other pair.
    """
    by_id = {problem.id: problem for problem in problems}
    known = [(number, pair) for number, pair in enumerate(pairs) if pair.problem in by_id]
    attacks = [
        (number, attack)
        for number, pair in known
        for attack in (PLAIN, *pair.attacked)
        if attack in (PLAIN, ORDER) or pair.attacked[attack] != pair.wrong
    ]
    seated = [
        _seated(policy, pairs[number], by_id[pairs[number].problem], number, attack, of_three(config), seed)
        for number, attack in attacks
    ]
    requests = [replace(one.request, temperature=0.0) for one in seated]
    replies = [reply.whole() for reply in run_async(sampled(policy, requests))]
    said: dict[tuple[int, str], tuple[Preferred, str]] = {
        key: (preferred_of(policy, one, reply), reply.text)
        for key, one, reply in zip(attacks, seated, replies, strict=True)
    }
    return [
        Judgment(number, attack, *said.get((number, attack), said[number, PLAIN]))
        for number, pair in known
        for attack in (PLAIN, *pair.attacked)
    ]


def _seated(
    policy: Policy,
    pair: JudgePair,
    problem: Problem,
    number: int,
    attack: str,
    config: DebateConfig,
    seed: int,
) -> SeatedPair:
    """Return a pair under an attack as the judge is shown it; but for "order" always in the same seats."""
    seating = seat_debate(problem, config, derive_seed(seed, "pair", number))
    judge = number % config.num_agents
    peers = peers_of(seating, judge)
    first = (number // config.num_agents + (attack == ORDER)) % 2
    right, wrong = peers[first], peers[1 - first]
    shown = {judge: pair.own, right: pair.right, wrong: pair.attacked.get(attack, pair.wrong)}
    texts = [shown[agent] for agent in range(config.num_agents)]
    return seated_pair(
        seating, texts, judge, right, context_budget(policy, config), name=f"{number:06d}:{attack}"
    )
