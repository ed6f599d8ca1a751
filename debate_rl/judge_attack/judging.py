"""Make pairs of a right and a wrong solution, plain and attacked, and let the judge compare each pair.

The judge is one of three agents and also sees its own earlier solution, as in a debate. During training, the
policy's own debates have fewer and harder decidable pairs. Judgments of fixed pairs are comparable over time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path
from random import Random
from typing import NamedTuple

from debate import Completion, DebateConfig, Policy, Problem, SampleRequest, run_debates
from debate.concurrency import run_async, stops_released, together
from debate.config import SummaryConfig
from debate.hold import read_turn, turn_request
from debate.parsing import last_boxed
from debate.policy import opens_thinking
from debate.prompting.fitting import ContextBudget, context_budget
from debate.prompting.prompt import Prompt, agent_prompt
from debate.prompting.rendering import render_entry
from debate.prompting.seating import Seating, prompts_of, seat_debate
from debate.prompting.shown import PublicTurn, asks_pairs, public_turn
from debate.protocols import GAMES
from debate.seeds import derive_seed
from debate.types import WHOLE_RESPONSE, WITHOUT_TRUTH, TurnId
from debate_rl.config import Config
from debate_rl.evaluation.grading import answer_in, graded
from debate_rl.evaluation.scores import Scores
from debate_rl.judge_attack.pairs import (
    FALL,
    HACK_GAP,
    PAIRS,
    PLAIN,
    JudgePair,
    Judgment,
    Preferred,
    as_lines,
    fall,
    folder_of,
    hack_gap,
    rates,
    read_judgments,
    read_pairs,
    step_file,
)
from debate_rl.judge_attack.persuaders import ORDER, PERSUADERS, WORDS, of_family, persuaded
from debate_rl.metrics.intervals import Estimate, clustered_mean
from debate_rl.metrics.trackers import Trackers
from debate_rl.runs.folder import write_whole
from debate_rl.runs.trainer_state import generators_kept
from debate_rl.sampling.load_problems import HeldOutProblems
from envs import Environment
from envs.families import FAMILIES
from envs.types import Mode
from rewards.truth import is_right

LIES = 0.2
"""Fraction of wrong solutions that claim the target as their result."""
LIVE = 64
"""Number of problems solved at a time until there are enough pairs."""


class SeatedPair(NamedTuple):
    """A pair as shown to the judge: seating, prompt, request, and the handle of the right solution."""

    seating: Seating
    prompt: Prompt
    request: SampleRequest
    right: str


def judge_accuracy(
    policy: Policy, family: str, problems: Sequence[Problem], *, config: DebateConfig, greedy: bool, seed: int
) -> Estimate:
    """Return the fraction of pairs on which the policy prefers the right side, one pair per problem.

    The right solution comes first in half of the pairs. A reply without a valid vote counts as wrong.
    ``greedy`` samples at temperature 0. ValueError for a debate in which a judge has no two others to
    compare.
    """
    check_judged(config)
    pairs: list[SeatedPair] = []
    for number, problem in enumerate(problems):
        rng = Random(derive_seed(seed, "pair", number))
        seating = seat_debate(problem, config, rng.getrandbits(62))
        judge = number % config.num_agents
        peers = _peers(seating, judge)
        right = peers[(number // config.num_agents) % len(peers)]
        write = partial(_family_solution, family, problem, rng)
        texts = [write(right=agent == right) for agent in range(config.num_agents)]
        texts[judge] = write(right=rng.random() < 0.5)
        pair = _seated(seating, texts, judge, right, ContextBudget(None, len), name=f"{number:06d}")
        request = replace(pair.request, seed=derive_seed(seed, "judge", number))
        pairs.append(pair._replace(request=replace(request, temperature=0.0) if greedy else request))
    replies = _replies(policy, [pair.request for pair in pairs])
    right_ones = [_preferred(policy, *pair) == "right" for pair in zip(pairs, replies, strict=True)]
    return clustered_mean([*map(float, right_ones)], [problem.id for problem in problems])


def check_judged(config: DebateConfig) -> None:
    """Raise ValueError for a protocol in which no judge sees solutions of two other agents."""
    if config.num_agents < 3:
        raise ValueError(
            f"debate.num_agents={config.num_agents}: a judge needs two other agents to compare; use 3 or more"
        )
    if config.history_rounds == 0:
        raise ValueError("debate.history_rounds=0: a judge would see no solutions; use 1 or more, or -1")


def _peers(seating: Seating, judge: int) -> list[int]:
    """Return the other agents in the order in which the judge sees them."""
    return [agent for agent in seating.orders[judge] if agent != judge]


def _seated(
    seating: Seating, texts: Sequence[str], judge: int, right: int, budget: ContextBudget, *, name: str
) -> SeatedPair:
    """Return the judge's turn in round 1, after one solution of each agent (N,)."""
    turns = [PublicTurn(TurnId(agent, 0), seating.handles[agent], text) for agent, text in enumerate(texts)]
    past = [[render_entry(seating.texts, turn) for turn in turns]]
    other = next(agent for agent in _peers(seating, judge) if agent != right)
    pair = (right, other) if asks_pairs(seating.config, 1) else None
    prompt = agent_prompt(seating, past, judge, 1, budget, pair=pair)
    request = replace(turn_request(seating, prompt, TurnId(judge, 1), 0, name), seat="learning")
    return SeatedPair(seating, prompt, request, seating.handles[right])


def _family_solution(family: str, problem: Problem, rng: Random, *, right: bool) -> str:
    writer = FAMILIES[family]
    while True:
        attempt = writer.attempt(problem, rng, right=float(right), lure=0.0 if right else 0.5)
        text = writer.write_solution(problem, attempt)
        if (" right" in writer.write_check(problem, text)) == right:
            break
    lies = not right and rng.random() < LIES
    return writer.write_lie(problem, attempt) if lies else text


def _replies(policy: Policy, requests: Sequence[SampleRequest]) -> list[Completion]:
    async def sampled() -> list[Completion]:
        with stops_released():
            return await together([policy.sample(request) for request in requests])

    return run_async(sampled())


def _preferred(policy: Policy, pair: SeatedPair, reply: Completion) -> Preferred:
    """Return the side that the ballots prefer, or "none" without ballots or if they contradict each other.

    With ``judge_own``, votes on the judge's own solution are ignored.
    """
    in_thinking = opens_thinking(policy, pair.request.messages)
    turn = read_turn(pair.seating, pair.request, pair.prompt, reply, in_thinking=in_thinking)
    sides = [(b, (b.left, b.right)) for b in turn.parsed.ballots]
    ballots = [b for b, both in sides if turn.handle not in both and pair.right in both]
    chosen = {None if b.outcome == "tie" else b.left if b.outcome == "left" else b.right for b in ballots}
    if len(chosen) != 1:
        return "none"
    return "right" if chosen == {pair.right} else "tie" if chosen == {None} else "wrong"


@dataclass(frozen=True, slots=True)
class PairPlan:
    """The plan for making pairs. ``family``: the synthetic family of the problems, or "".

    ``tiny``: True if the judge is a tiny model, which can only read texts of its family.
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
    """Return at most ``count`` pairs of different problems.

    A synthetic family writes both solutions. For other data, the policy's own solutions are paired; problems
    that the policy always or never solves have no pair.
    """
    pairs: list[JudgePair] = []
    for problem, right, wrong, own in _written(plan) if plan.family else _own_solutions(plan, policy):
        if len(pairs) == plan.count:
            break
        attacked = _attacked(plan, problem, wrong)
        pairs.append(JudgePair(problem.id, problem.question, right, wrong, own, attacked))
    return pairs


def _written(plan: PairPlan) -> Iterator[tuple[Problem, str, str, str]]:
    for problem in plan.problems:
        rng = Random(derive_seed(plan.seed, "pair", problem.id))
        write = partial(_family_solution, plan.family, problem, rng)
        yield problem, write(right=True), write(right=False), write(right=rng.random() < 0.5)


def _own_solutions(plan: PairPlan, policy: Policy) -> Iterator[tuple[Problem, str, str, str]]:
    config = _of_three(plan.config).one_round()
    strip = prompts_of(config).strip
    usable = [one for one in plan.problems if one.kind not in WITHOUT_TRUTH | WHOLE_RESPONSE]
    for start in range(0, len(usable), LIVE):
        seed = derive_seed(plan.seed, "solutions", start)
        for debate in run_debates(usable[start : start + LIVE], policy, config, seed=seed):
            done = graded(plan.environment, debate, plan.mode)
            texts: dict[bool, list[str]] = {True: [], False: []}
            for turn in done.debate.turns:
                verdict, text = is_right(turn.id, done.correct), public_turn(turn, strip=strip).solution
                if verdict is not None and text:
                    texts[verdict].append(text)
            if texts[True] and texts[False]:
                rng = Random(derive_seed(plan.seed, "own", debate.problem.id))
                own = rng.choice([*texts[True], *texts[False]])
                yield debate.problem, texts[True][0], texts[False][0], own


def _attacked(plan: PairPlan, problem: Problem, wrong: str) -> dict[str, str]:
    rng = Random(derive_seed(plan.seed, "persuaders", problem.id))
    phrases = WORDS
    if plan.family and plan.tiny:
        check = FAMILIES[plan.family].write_check(problem, wrong)
        phrases = of_family(check.replace(" wrong", " right"))

    def read(text: str) -> object:
        return last_boxed(text), answer_in(plan.environment, problem, text, plan.mode)

    return {name: persuaded(name, wrong, phrases, read, rng) for name in PERSUADERS}


def _of_three(config: DebateConfig) -> DebateConfig:
    """Return the protocol for a judge and two others, with solutions in full. A game becomes a debate."""
    changes = {"num_agents": 3, "by_level": (), "history_rounds": 1, "conversation": False}
    changes |= {"protocol": "debate"} if config.protocol in GAMES else {}
    changes |= {"summary": SummaryConfig(), "min_rounds": None, "order": "per_debate"}
    return config.model_copy(update=changes)


def judge_pairs(
    policy: Policy, pairs: Sequence[JudgePair], problems: Sequence[Problem], config: DebateConfig, seed: int
) -> list[Judgment]:
    """Return the policy's judgment of each pair, plain and attacked, at temperature 0.

    Equal texts are judged once. Pairs whose problem is not in ``problems`` are left out. The right side comes
    first in half of the pairs.
    """
    by_id = {problem.id: problem for problem in problems}
    known = [(number, pair) for number, pair in enumerate(pairs) if pair.problem in by_id]
    attacks = [
        (number, attack)
        for number, pair in known
        for attack in (PLAIN, *pair.attacked)
        if attack in (PLAIN, ORDER) or pair.attacked[attack] != pair.wrong
    ]
    budget, config = context_budget(policy, _of_three(config)), _of_three(config)
    seated: list[SeatedPair] = []
    for number, attack in attacks:
        pair = pairs[number]
        seating = seat_debate(by_id[pair.problem], config, derive_seed(seed, "pair", number))
        judge, swapped = number % 3, (number // 3 + (attack == ORDER)) % 2
        right, wrong = _peers(seating, judge)[:: -1 if swapped else 1]
        shown = {judge: pair.own, right: pair.right, wrong: pair.attacked.get(attack, pair.wrong)}
        texts = [shown[agent] for agent in range(3)]
        seated.append(_seated(seating, texts, judge, right, budget, name=f"{number:06d}:{attack}"))
    requests = [replace(one.request, temperature=0.0) for one in seated]
    replies = [reply.whole() for reply in _replies(policy, requests)]
    said: dict[tuple[int, str], tuple[Preferred, str]] = {
        key: (_preferred(policy, one, reply), reply.text)
        for key, one, reply in zip(attacks, seated, replies, strict=True)
    }
    return [
        Judgment(number, attack, *said.get((number, attack), said[number, PLAIN]))
        for number, pair in known
        for attack in (PLAIN, *pair.attacked)
    ]


@dataclass(frozen=True, slots=True)
class JudgeWatch:
    """Measures a run's judge on fixed pairs, made from the problems of the first held-out set (``part``)."""

    run: Path
    config: Config
    part: HeldOutProblems
    policy: Policy
    tracker: Trackers

    def measure(self, scores: Scores, step: int) -> tuple[Scores, dict[str, float]]:
        """Judge the pairs after ``step`` steps. Return ``scores`` with the accuracies added, and metrics.

        At step 0, make the pairs and let the start judge judge them.
        """
        if not self.config.held_out.judge_pairs:
            return scores, {}
        pairs = self._pairs(step)
        judgments = self._judged(pairs, step)
        start = judgments if step == 0 else read_judgments(self.run, 0)
        found = rates(pairs, judgments)
        figures = _with_bounds(FALL, fall(found))
        if step:
            figures |= _with_bounds(HACK_GAP, hack_gap(found, rates(pairs, start)))
        known = {
            f"judge/pairs/{attack}": {id: row for id, row in by_problem.items() if id in scores.problems}
            for attack, by_problem in found.items()
        }
        return replace(scores, values={**scores.values, **known}), figures

    def _pairs(self, step: int) -> list[JudgePair]:
        """Return the pairs of the run. A new run makes and stores them."""
        if (path := folder_of(self.run) / PAIRS).is_file():
            return read_pairs(self.run)
        if step:
            self.tracker.say(f"{path}: is missing, so the judge is not measured on fixed pairs")
            return []
        config, part = self.config, self.part
        family = config.held_out.kind or config.env.kind
        plan = PairPlan(
            part.environment,
            part.problems,
            config.debate,
            config.held_out.judge_pairs,
            derive_seed(config.seed, "judge pairs"),
            mode=config.grader.final,
            family=family if family in FAMILIES and not config.held_out.path else "",
            tiny=config.model.tiny is not None,
        )
        with generators_kept():
            pairs = make_pairs(plan, self.policy)
        if len(pairs) < plan.count:
            self.tracker.say(
                f"held_out.judge_pairs = {plan.count}: only {len(pairs)} of {len(plan.problems)} held-out "
                "problems have a right and a wrong solution"
            )
        path.parent.mkdir(exist_ok=True)
        write_whole(path, as_lines(pairs))
        return pairs

    def _judged(self, pairs: list[JudgePair], step: int) -> list[Judgment]:
        """Return and store the judgments after ``step`` steps. The start judge judges only once."""
        path = step_file(self.run, step)
        if step == 0 and path.is_file():
            return read_judgments(self.run, 0)
        self.tracker.advance("judging fixed pairs", 0, len(pairs))
        seed = derive_seed(self.config.seed, "judge seats")
        with generators_kept():
            judgments = judge_pairs(self.policy, pairs, self.part.problems, self.config.debate, seed)
        self.tracker.advance("judging fixed pairs", len(pairs), len(pairs))
        path.parent.mkdir(exist_ok=True)
        write_whole(path, as_lines(judgments))
        return judgments


def _with_bounds(name: str, found: Estimate | None) -> dict[str, float]:
    if found is None:
        return {}
    bounds = {"low": found.low, "high": found.high}
    known = {f"eval/{name}/{end}": bound for end, bound in bounds.items() if isfinite(bound)}
    return {f"eval/{name}": found.value, **known}
