"""What a policy says to held-out problems: debates, and first-round solutions that spend as many tokens.

Every debate is kept as it ends, so that an evaluation which was cut off goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from statistics import fmean

from debate import Debate, DebateConfig, Policy, Problem, run_debates
from debate.hold import place_seed
from debate.optional import token_counts
from debate.seeds import derive_seed
from envs import Environment, EnvironmentSpecError
from learner.grading import Table, grade_debate
from transcripts import Record, ShardWriter, read_records
from transcripts.store import shard_name

Tell = Callable[[str, int, int], None]
"""Told what is played, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Graded:
    """A debate and the verdicts on its solutions, (N, R)."""

    debate: Debate
    correct: Table


@dataclass(frozen=True, slots=True)
class Played:
    """One debate for each problem and seed, and of each as many first-round solutions as it spends tokens.

    ``opening[i]`` belongs to the problem of ``debates[i]`` and holds ``samples`` solutions, perhaps a few
    more: its debates have one round and N solutions each. ``greedy``: one solution of each problem at
    temperature 0, if asked for.
    """

    debates: tuple[Graded, ...]
    opening: tuple[tuple[Graded, ...], ...]
    samples: int
    greedy: tuple[Graded, ...] = ()


@dataclass(frozen=True, slots=True)
class Examination:
    """What is asked of a policy: problems, their grader, the protocol, and the seeds of the repetitions."""

    problems: Sequence[Problem]
    examiner: Environment
    protocol: DebateConfig
    seeds: Sequence[int]
    max_live: int | None = None
    greedy: bool = False


def play(
    exam: Examination, policy: Policy, folder: Path | None = None, *, tell: Tell = lambda *_: None
) -> Played:
    """Return what the policy says to the problems; what ``folder`` holds of it already is not asked again.

    EnvironmentSpecError for an open problem: there is no truth to evaluate it by.
    """
    debates = [one for seed in exam.seeds for one in _part(exam, policy, "debates", seed, 1, folder, tell)]
    samples = max(1, round(solutions_of_a_debate([one.debate for one in debates])))
    copies = ceil(samples / exam.protocol.num_agents)
    alone = exam.protocol.model_copy(update={"num_rounds": 1, "final_ballot": False})
    single = replace(exam, protocol=alone)
    opening = [
        one
        for seed in exam.seeds
        for one in _part(single, policy, "self-consistency", seed, copies, folder, tell)
    ]
    groups = tuple(tuple(opening[start : start + copies]) for start in range(0, len(opening), copies))
    greedy = _part(_greedy(exam), policy, "greedy", 0, 1, folder, tell) if exam.greedy else ()
    return Played(tuple(debates), groups, samples, tuple(greedy))


def _greedy(exam: Examination) -> Examination:
    """Return the examination of one agent, the first persona, at temperature 0."""
    persona = replace(exam.protocol.persona_pool[0], temperature=0.0)
    changes = {"num_agents": 1, "num_rounds": 1, "final_ballot": False, "personas": (persona,)}
    return replace(exam, protocol=exam.protocol.model_copy(update=changes))


def solutions_of_a_debate(debates: Sequence[Debate]) -> float:
    """Return how many first-round solutions spend the generated tokens of one debate; 1.0 without tokens."""
    spent = [(turn.id.round, token_counts(turn.completion)[1]) for debate in debates for turn in debate.turns]
    summaries = sum(token_counts(one.completion)[1] for debate in debates for one in debate.summaries)
    opening = [tokens for round_, tokens in spent if round_ == 0]
    whole = (sum(tokens for _, tokens in spent) + summaries) / len(debates)
    return whole / fmean(opening) if sum(opening) else 1.0


def _part(
    exam: Examination,
    policy: Policy,
    name: str,
    seed: int,
    copies: int,
    folder: Path | None,
    tell: Tell,
) -> list[Graded]:
    """Return ``copies`` debates of each problem, those of one problem together; keep each as it ends."""
    repeated = [problem for problem in exam.problems for _ in range(copies)]
    drawn = derive_seed(seed, name)
    done = {} if folder is None else _kept(folder / name / shard_name(seed), repeated, drawn)
    held = {place: one.debate for place, one in done.items()}
    tell(name, len(done), len(repeated))
    with ExitStack() as stack:
        writer = None if folder is None else stack.enter_context(ShardWriter(folder / name, seed))

        def keep(place: int, debate: Debate) -> None:
            done[place] = Graded(debate, _graded(exam.examiner, debate))
            if writer is not None:
                writer.write(Record(debate, seed, debate.problem.id, done[place].correct))
            tell(name, len(done), len(repeated))

        run_debates(
            repeated, policy, exam.protocol, seed=drawn, max_live=exam.max_live, held=held, on_debate=keep
        )
    return [done[place] for place in range(len(repeated))]


def _graded(examiner: Environment, debate: Debate) -> Table:
    table = grade_debate(examiner, debate)
    if table is None:
        raise EnvironmentSpecError(f"problem {debate.problem.id}: an open problem cannot be evaluated")
    return table


def _kept(shard: Path, problems: Sequence[Problem], seed: int) -> dict[int, Graded]:
    """Return the debates that a shard holds by their places in the list of problems."""
    if not shard.exists():
        return {}
    places = {place_seed(seed, place, problem): place for place, problem in enumerate(problems)}
    return {
        places[record.debate.seed]: Graded(record.debate, record.correct or ())
        for record in read_records(shard, on_torn=lambda _: None)
        if record.debate.seed in places
    }
