"""Debates whose judges are as good, and as biased, as is put in: what a report of them must find.

Solutions are made up from a seed; judges are simulated and know the truth as the grader does. All else is as
in training: texts with tags, the parser, the grader, rewards, records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, cycle, islice
from random import Random

from debate import Debate, DebateConfig, run_debates
from debate.parsing import parse_turn
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.prompt import which_task
from debate.prompting.rendering import SECTIONS
from debate.prompting.seating import Seating, seat_debate
from debate.seeds import debate_seed, derive_seed
from debate.types import Problem, SampleRequest
from debate_rl.evaluation.grading import grade_debate
from envs import Environment, load_environment
from rewards import RewardConfig, score_debate
from transcripts import Record

KEEPS = 0.5
"""The chance that an agent's next solution is the one it gave before."""
PER_STEP = 32
"""Debates in a step."""
SOLUTIONS = 6
"""Made up for each problem."""
RIGHT = (0.8, 0.5, 0.3)
"""The chance of a right solution, by level."""
LARGEST = (9, 30, 90)
ASIDES = (
    "Let me take it in two steps.",
    "First the bracket, then the product, as the order of operations wants.",
    "I check each step by doing it backwards before I go on.",
)


@dataclass(frozen=True, slots=True)
class Judges:
    """How all judges of a simulation vote.

    ``silent`` is the chance that a due vote is left out, ``ties`` that a vote is a tie. Else the right side
    of a decidable pair wins with chance ``accuracy``, by ``position`` more where it was shown first and less
    where second; of two right or two wrong solutions the first shown wins with chance 1/2 + ``position``.
    """

    accuracy: float = 0.7
    position: float = 0.0
    ties: float = 0.0
    silent: float = 0.0

    def __post_init__(self) -> None:
        for name in ("accuracy", "ties", "silent"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name}: must be in [0, 1], got {value}")
        least = abs(self.position)
        if not (least <= 0.5 and least <= self.accuracy <= 1.0 - least):
            raise ValueError(
                f"position: accuracy and 1/2, each plus and minus it, must be in [0, 1], got {self.position}"
            )

    @property
    def expected(self) -> dict[str, float]:
        """What the figures of docs/report.md are, up to chance; the first shown is right half of the time.

        >>> Judges(0.75, ties=0.2).expected["judge/accuracy"]
        0.6000000000000001
        """
        decided = 1.0 - self.ties
        return {
            "judge/accuracy": decided * self.accuracy,
            "judge/strict_accuracy": (1.0 - self.silent) * decided * self.accuracy,
            "judge/coverage": 1.0 - self.silent,
            "judge/ties": self.ties,
            "bias/position": self.position,
        }

    def first_wins(self, first: bool, second: bool) -> float:
        """Return the chance that the first shown wins a vote that is not a tie; the sides: are they right."""
        if first == second:
            return 0.5 + self.position
        return (self.accuracy if first else 1.0 - self.accuracy) + self.position

    def lines(self, shown: Sequence[tuple[str, bool]], rng: Random) -> list[str]:
        """Return the comparison lines for labels in the order shown, each with whether its solution is right.

        >>> Judges(1.0).lines([("K7", False), ("Q2", True)], Random(0))[0] in ("K7 < Q2", "Q2 > K7")
        True
        """
        lines: list[str] = []
        for first, second in combinations(shown, 2):
            silent, tie, wins = (rng.random() for _ in range(3))
            won = wins < self.first_wins(first[1], second[1])
            sign = "=" if tie < self.ties else ">" if won else "<"
            turned = rng.random() < 0.5  # the order within a line says nothing of the order shown
            line = (first[0], sign, second[0])
            if turned:
                line = (second[0], sign.translate(_TURNED), first[0])
            if silent >= self.silent:
                lines.append(" ".join(line))
        return lines


_TURNED = str.maketrans("<>", "><")


@dataclass(frozen=True, slots=True)
class Solved:
    """A problem and solutions of it; ``expected``: which are right."""

    problem: Problem
    texts: tuple[str, ...]
    expected: tuple[bool, ...]


def known_records(
    solved: Sequence[Solved], judges: Judges, config: DebateConfig, *, debates: int, seed: int = 0
) -> Iterator[Record]:
    """Yield scored debates, 32 in a step, each problem about as often as the others."""
    todo = list(islice(cycle(solved), debates))
    environment = load_environment("gsm8k")  # any data set compares answers alike
    for step, start in enumerate(range(0, len(todo), PER_STEP)):
        part, own = todo[start : start + PER_STEP], derive_seed(seed, "step", step)
        for debate in replay_solutions(part, judges, config, environment, seed=own):
            _, correct = grade_debate(environment, debate)
            yield Record(
                debate, step, debate.problem.id, correct, score_debate(debate, correct, RewardConfig())
            )


@dataclass(frozen=True, slots=True)
class Dealt:
    """Who says what in one debate: ``texts`` and ``right`` (N, R)."""

    texts: tuple[tuple[str, ...], ...]
    right: tuple[tuple[bool, ...], ...]
    seating: Seating


def deal(solved: Solved, right: Sequence[bool], config: DebateConfig, seed: int) -> Dealt:
    """Return the solutions of each agent, different ones in the first round as far as there are any.

    Later on an agent keeps its solution or, with chance 1 - ``KEEPS``, takes any of the problem's.
    """
    rng, count = Random(derive_seed(seed, "deal")), len(solved.texts)
    drawn = rng.sample(range(count), count)
    chosen = [[drawn[agent % count]] for agent in range(config.num_agents)]
    for row in chosen:
        for _ in range(config.num_rounds - 1):
            row.append(row[-1] if rng.random() < KEEPS else rng.randrange(count))
    return Dealt(
        tuple(tuple(solved.texts[index] for index in row) for row in chosen),
        tuple(tuple(right[index] for index in row) for row in chosen),
        seat_debate(solved.problem, config, seed),
    )


def replay_solutions(
    solved: Sequence[Solved], judges: Judges, config: DebateConfig, environment: Environment, *, seed: int
) -> Iterator[Debate]:
    """Yield a debate for each problem of the list, held by agents who say what they were dealt.

    Judges know the truth as the grader does, and err as ``judges`` says.
    """
    problems = [item.problem for item in solved]
    dealt: dict[str, Dealt] = {}
    for index, item in enumerate(solved):
        right = [environment.grade(item.problem, answer_of(text)).verdict is True for text in item.texts]
        own = debate_seed(seed, index, item.problem)
        dealt[f"{index:06d}"] = deal(item, right, config, own)
    policy = ScriptedPolicy(lambda request: _reply(dealt, judges, config, request))
    yield from run_debates(problems, policy, config, seed=seed)


def _reply(dealt: Mapping[str, Dealt], judges: Judges, config: DebateConfig, request: SampleRequest) -> str:
    """Return what is said in a turn, with every section that is due."""
    mine = dealt[request.debate.partition(":")[0]]
    agent, round_ = request.turn.agent, request.turn.round
    order = mine.seating.orders[agent] if round_ else ()
    shown = [(mine.seating.handles[a], mine.right[a][round_ - 1]) for a in order if a != agent]
    lines = judges.lines(shown, Random(request.seed))
    written = {
        "solution": mine.texts[agent][round_] if round_ < config.num_rounds else "",
        "evaluation": f"I read {', '.join(label for label, _ in shown)}.",
        "comparison": "\n" + "\n".join(lines) + "\n",
    }
    task = which_task(config, round_, shows=round_ > 0, due=config.num_agents > 2)
    return "\n".join(f"<{name}>{written[name]}</{name}>" for name in SECTIONS[task])


def answer_of(text: str) -> str | None:
    """Return the answer that a debate reads in a solution."""
    return parse_turn(f"<solution>{text}</solution>", handles=(), own=None, due=False).answer


def made_solutions(problems: int, *, seed: int) -> list[Solved]:
    """Return problems of three levels with six solutions each.

    >>> [item.problem.question for item in made_solutions(2, seed=0)]
    ['What is (4 + 9) * 6?', 'What is (15 + 10) * 11?']
    """
    return [_made(number, Random(derive_seed(seed, "made", number))) for number in range(problems)]


def _made(number: int, rng: Random) -> Solved:
    level = number % len(RIGHT)
    a, b, c = (rng.randint(2, LARGEST[level]) for _ in range(3))
    question, gold = f"What is ({a} + {b}) * {c}?", str((a + b) * c)
    problem = Problem(f"made/{number}", question, gold, "made/arithmetic", f"Level {level + 1}", "number")
    right = [rng.random() < RIGHT[level] for _ in range(SOLUTIONS)]
    texts = tuple(_solution(a, b, c, is_right, rng) for is_right in right)
    return Solved(problem, texts, tuple(right))


def _solution(a: int, b: int, c: int, right: bool, rng: Random) -> str:
    """Return two steps with, unless ``right``, a slip in one of them, and up to three asides."""
    slip = 0 if right else rng.choice((-10, -2, -1, 1, 2, 10))
    early = rng.random() < 0.5
    total = a + b + (slip if early else 0)
    product = total * c + (0 if early else slip)
    steps = f"{a} + {b} = {total}. {total} * {c} = {product}. So it is \\boxed{{{product}}}."
    return " ".join((*rng.sample(ASIDES, rng.randint(0, 2)), steps))
