"""Plays held-out problems with a policy: debates, and first-round solutions for the same number of tokens.

If no debates are requested or possible, one agent alone solves the problems. Every debate is stored when it
ends, so that an interrupted evaluation resumes where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from statistics import fmean
from typing import Any

from msgspec import UNSET

from debate import Completion, Debate, DebateConfig, Policy, Problem, SampleRequest, run_debates
from debate.early_stop import is_of_protocol
from debate.policy import token_counts
from debate.prompting.shown import rounds_held, speakers
from debate.seeds import debate_seed, derive_seed
from debate.types import TurnId
from debate_rl.evaluation.folder import OPEN_REPLIES, EvaluationError, KeptReplies
from debate_rl.evaluation.grading import (
    IN_A_BOX,
    BackgroundGrading,
    Graded,
    Verifying,
    agreement,
    graded,
    stored_mode,
)
from debate_rl.inference.wrapped import WrappedPolicy
from envs import Environment
from envs.types import Mode
from transcripts import Record, ShardWriter, TranscriptError, read_records
from transcripts.files import shard_name

Tell = Callable[[str, int, int, float], None]
"""Called with the name of a part, its number of stored debates, its total number of debates, and its progress
in debates, where each reply of an unfinished debate counts as a fraction of a debate."""


@dataclass(frozen=True, slots=True)
class Unopened:
    """A policy that is opened for the first sample, so that no model is loaded if all debates are stored."""

    open: Callable[[], Policy]


@dataclass(frozen=True, slots=True)
class Played:
    """A debate and first-round solutions for each problem and seed. Solutions are one-round debates.

    ``opening[i]`` has the solutions for the problem of ``debates[i]``. ``samples`` is the number of solutions
    that cost as many tokens as a debate. Only the first ``solutions`` solutions of a problem count.
    ``greedy`` has one solution of each problem at temperature 0, if requested. ``debates`` is empty if no
    debates are held.
    """

    debates: tuple[Graded, ...]
    opening: tuple[tuple[Graded, ...], ...]
    samples: int
    solutions: int
    greedy: tuple[Graded, ...] = ()


@dataclass(frozen=True, slots=True)
class EvalPlan:
    """The plan of an evaluation: problems with their environment, the protocol, and one seed per repetition.

    ``samples``: minimum number of first-round solutions of each problem and seed.
    ``greedy``: also sample one solution of each problem at temperature 0.
    ``max_live``: maximum number of debates open at a time.
    ``requests``: maximum number of replies sampled together; also limits the open debates.
    ``direct``: no debates; one agent alone, with the first persona, writes ``samples`` solutions (at least
    one) for each problem and seed.
    ``mode``: the mode of the grader.
    ``tokens``: also store token ids and log-probabilities.
    ``verifying``: a verifier model that scores solutions in addition to the grader, or instead of it.
    ``summarizer``: returns the policy that writes summaries; called for the first summary. None: the policy
    under evaluation.
    """

    problems: Sequence[Problem]
    environment: Environment
    protocol: DebateConfig
    seeds: Sequence[int]
    max_live: int | None = None
    samples: int = 0
    greedy: bool = False
    requests: int | None = None
    direct: bool = False
    mode: Mode = IN_A_BOX
    tokens: bool = True
    verifying: Verifying | None = None
    summarizer: Callable[[], Policy | None] | None = None

    def live(self) -> int | None:
        """Return the maximum number of debates open at a time, or None for no limit."""
        by_requests = None if self.requests is None else max(1, self.requests // self.protocol.num_agents)
        return min((limit for limit in (self.max_live, by_requests) if limit), default=None)


def play(
    plan: EvalPlan, policy: Policy | Unopened, folder: Path | None = None, *, tell: Tell = lambda *_: None
) -> Played:
    """Play a plan with a policy and return the debates and solutions.

    Debates that ``folder`` already contains are not sampled again. EnvironmentSpecError for an open problem,
    which has no gold answer.
    """
    hold = partial(_part, policy=policy, folder=folder, tell=tell)
    alone, count = plan.protocol.one_round(alone=True), len(plan.problems)  # one turn by one agent
    debates, greedy, opening = list[Graded](), list[Graded](), list[tuple[Graded, ...]]()

    def in_turn(single: EvalPlan, name: str, seed: int, times: int) -> list[tuple[Graded, ...]]:
        """Return ``times`` solutions per problem. Problems alternate so that more can be added."""
        found = hold(single, name=name, seed=seed, problems=[*plan.problems] * times)
        return [tuple(found[start::count]) for start in range(count)]

    if plan.direct:
        samples = solutions = max(1, plan.samples)
        for seed in plan.seeds:
            opening += in_turn(replace(plan, protocol=alone), "direct", seed, samples)
    else:
        for seed in plan.seeds:
            debates += hold(plan, name="debates", seed=seed, problems=plan.problems)
        samples = max(1, round(solutions_of_a_debate([graded.debate for graded in debates])))
        solutions = max(samples, plan.samples)
        single, agents = replace(plan, protocol=plan.protocol.one_round()), plan.protocol.num_agents
        copies = ceil(samples / agents)
        more = max(0, ceil(plan.samples / agents) - copies)
        repeated = [problem for problem in plan.problems for _ in range(copies)]
        for seed in plan.seeds:
            found = hold(single, name="self-consistency", seed=seed, problems=repeated)
            groups = [tuple(found[start : start + copies]) for start in range(0, len(repeated), copies)]
            if more:
                further = in_turn(single, "further samples", seed, more)
                groups = [(*group, *rest) for group, rest in zip(groups, further, strict=True)]
            opening += groups
    if plan.greedy:
        cold = replace(plan, protocol=alone.model_copy(update={"temperature": 0.0}))
        greedy = hold(cold, name="greedy", seed=0, problems=plan.problems)
    return Played(tuple(debates), tuple(opening), samples, solutions, tuple(greedy))


def is_alone(protocol: DebateConfig) -> bool:
    """Return whether the protocol has no debate: one agent and one round."""
    return protocol.num_agents == protocol.num_rounds == 1


def solutions_of_a_debate(debates: Sequence[Debate]) -> float:
    """Return how many first-round solutions cost the generated tokens of one debate, or 1.0 if unknown."""
    spent = [(turn.id.round, token_counts(turn.completion)[1]) for debate in debates for turn in debate.turns]
    auxiliary = sum(token_counts(reply)[1] for debate in debates for reply in debate.auxiliary())
    opening = [tokens for round_, tokens in spent if round_ == 0]
    whole = (sum(tokens for _, tokens in spent) + auxiliary) / len(debates)
    return whole / fmean(opening) if sum(opening) else 1.0


def _part(
    plan: EvalPlan,
    *,
    policy: Policy | Unopened,
    name: str,
    seed: int,
    problems: Sequence[Problem],
    folder: Path | None,
    tell: Tell,
) -> list[Graded]:
    """Return a debate for each entry of ``problems``. Store each when it ends; regrade stored debates."""
    drawn = derive_seed(seed, name)
    number = list(plan.seeds).index(seed) if name != "greedy" else 0
    shard = None if folder is None else folder / name / shard_name(number)
    stored = {} if shard is None else _kept(shard, problems, drawn, plan.protocol)
    verifying, agents = plan.verifying, plan.protocol.num_agents
    begun = {index: verifying.begin(debate) if verifying else None for index, debate in stored.items()}
    done = {
        index: graded(plan.environment, debate, plan.mode, begun[index]) for index, debate in stored.items()
    }
    part = name if name in ("debates", "direct") or agents == 1 else f"{name}, {agents} at a time"
    part = f"{part}, seed {seed}" if len(plan.seeds) > 1 else part
    tell(part, len(done), len(problems), len(done))
    if len(stored) == len(problems):
        return [done[index] for index in range(len(problems))]
    if verifying is not None:
        verifying.model.check()
    speaker = policy.open() if isinstance(policy, Unopened) else policy
    with ExitStack() as stack:
        writer = None
        if folder is not None:
            writer = stack.enter_context(ShardWriter(folder / name, number, tokens=plan.tokens))

        replies = 0

        def tell_now(count: int | None = None) -> None:
            nonlocal replies
            replies = replies if count is None else count
            begun = len(stored) + replies / turns_of(plan.protocol)
            tell(part, len(done), len(problems), max(len(done), min(begun, len(problems) - 0.5)))

        def keep(debate: Debate, done_with: Graded | None) -> None:
            if writer is not None:
                truth, verdicts = (done_with.truth, done_with.verdicts) if done_with else (None, None)
                id, mode = debate.problem.id, stored_mode(plan.mode)
                writer.write(Record(debate, number, id, truth, mode=mode, verdicts=verdicts or UNSET))
            tell_now()

        if folder is not None and turns_of(plan.protocol) > 1:  # a debate of one turn is stored at once
            speaker = stack.enter_context(KeptReplies(speaker, folder / OPEN_REPLIES))
        counted = stack.enter_context(counted_replies(speaker, tell_now))
        marking = BackgroundGrading(plan.environment, keep, done, plan.mode, verifying)
        grading = stack.enter_context(marking)
        run_debates(
            problems,
            counted,
            plan.protocol,
            seed=drawn,
            max_live=plan.live(),
            summarizer=summarizer_of(plan.protocol, plan.summarizer),
            agreed=agreement(plan.environment, plan.mode),
            held=stored,
            on_debate=grading.take,
        )
    return [done[index] for index in range(len(problems))]


def summarizer_of(protocol: DebateConfig, opened: Callable[[], Policy | None] | None) -> Policy | None:
    """Return the policy that writes summaries and compressions.

    Return None if there are none, or if the debating policy writes them itself.
    """
    wanted = protocol.summary.enabled or protocol.compress.over is not None
    return opened() if wanted and rounds_held(protocol) > 1 and opened is not None else None


def turns_of(protocol: DebateConfig) -> int:
    """Return the number of turns of a debate that does not stop early."""
    return sum(len(speakers(protocol, round_)) for round_ in range(rounds_held(protocol)))


class CountedReplies(WrappedPolicy):
    """A policy that counts its replies and calls ``said`` with each reply."""

    def __init__(self, inner: Policy, said: Callable[[Completion], None]) -> None:
        super().__init__(inner)
        self._said, self.count = said, 0

    async def sample(self, request: SampleRequest) -> Completion:
        """Return the inner policy's reply to a request, and count it."""
        reply = (await self.inner.sample(request)).whole()
        self.count += 1
        self._said(reply)
        return reply


@contextmanager
def counted_replies(policy: Policy, tell: Callable[[int], None]) -> Generator[Policy]:
    """Yield a policy that calls ``tell`` with the number of replies so far, as each one ends.

    A local model reports a reply before its batch has ended.
    """
    engine: Any = policy
    count = 0
    while isinstance(engine, WrappedPolicy):
        engine = engine.inner

    def add(ended: int) -> None:
        nonlocal count
        count += ended
        tell(count)

    if not hasattr(engine, "on_ended"):
        yield CountedReplies(policy, lambda _: add(1))
        return
    engine.on_ended = add
    try:
        yield policy
    finally:
        engine.on_ended = None


def _kept(shard: Path, problems: Sequence[Problem], seed: int, protocol: DebateConfig) -> dict[int, Debate]:
    """Return the debates in a shard that belong to ``problems``, by index. Other debates are ignored."""
    if not shard.exists():
        return {}
    index_of = {debate_seed(seed, index, problem): index for index, problem in enumerate(problems)}
    debates: dict[int, Debate] = {}
    try:
        for debate in (record.debate for record in read_records(shard, on_torn=lambda _: None)):
            index = index_of.get(debate.seed)
            if index is None:
                continue
            debates[index] = debate
            whole = _is_whole(debate) and is_of_protocol(debate, protocol)
            if not whole or debate.problem != problems[index]:
                raise TranscriptError(
                    f"{shard}: the debate with seed {debate.seed} belongs to another evaluation"
                )
    except TranscriptError as error:
        raise EvaluationError(f"{error}; move the file away, or choose another --out") from error
    return debates


def _is_whole(debate: Debate) -> bool:
    """Return whether a debate has each turn of its protocol exactly once."""
    config, rounds = debate.protocol, range(rounds_held(debate.protocol))
    turns = [TurnId(agent, round_) for round_ in rounds for agent in speakers(config, round_)]
    return sorted(turn.id for turn in debate.turns) == sorted(turns)
