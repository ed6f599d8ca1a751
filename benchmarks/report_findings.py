"""How often does a page of `debate report` state what is not so, and how often does it find what is put in?

Pages are of simulated runs: debates of known judges on made problems (benchmarks.known_judges), a
training curve, and held-out evaluations before and after. In the runs with nothing put in, judges are right
with one chance all along, have no bias, and nothing is learned: any finding beside that judges and their
winners beat chance is false. In the others one thing is put in; printed is the share of pages that state it,
and the share that state anything false beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter

import numpy as np
from known_judges import Judges, Solved, made_solutions, replay_solutions
from report import Figure, parser, report

from debate import DebateConfig
from debate_rl.alarms import Curves
from debate_rl.evaluation.grading import grade_debate
from debate_rl.metrics.held_out import DIRECT, JUDGE, WINNER, HeldOut
from debate_rl.metrics.intervals import wilson
from debate_rl.reports.document import Judged
from debate_rl.reports.figures import figures_of
from debate_rl.reports.findings import Finding, findings, judgment_looks
from debate_rl.reports.report import training_looks
from debate_rl.reports.rows import Study
from debate_rl.reports.run import Run
from envs import load_environment
from rewards import RewardConfig, score_debate
from transcripts import Record

TRUE_OF_ALL = ("judge/coin", "winner/lift")
"""So in every run whose judges are better than a coin."""
CONFIG = DebateConfig(num_agents=3, num_rounds=2)
STEPS = 12


@dataclass(frozen=True, slots=True)
class Setting:
    """``judges(part)`` at a part of the run, 0 to 1; the ``gain`` in accuracy; which findings are so."""

    name: str
    judges: Callable[[float], Judges]
    gain: float = 0.0
    held_out_judge: tuple[float, float] = (0.7, 0.7)
    put_in: tuple[str, ...] = ()
    debates: int = 240
    unseen: float | None = None
    """Judge accuracy on the quarter of problems whose wrong solutions show no fault; None: as on others."""


def judge(accuracy: float, position: float = 0.0) -> Callable[[float], Judges]:
    """The same judges all along."""
    return lambda part: Judges(accuracy, position)


def falling(first: float, last: float) -> Callable[[float], Judges]:
    """Judges whose accuracy falls from the first step to the last, evenly."""
    return lambda part: Judges(first + (last - first) * part)


SETTINGS = (
    Setting("nothing put in, judges .7", judge(0.7)),
    Setting("nothing put in, judges .9", judge(0.9), held_out_judge=(0.9, 0.9)),
    Setting("nothing put in, judges .7, 60 debates", judge(0.7), debates=60),
    Setting("position +.05", judge(0.7, 0.05), put_in=("bias/position",)),
    Setting("position +.1", judge(0.7, 0.1), put_in=("bias/position",)),
    Setting("judges .98 to .79, in debates", falling(0.98, 0.79), put_in=("judge/change",)),
    Setting(
        "judges .98 to .79, in debates and held out",
        falling(0.98, 0.79),
        held_out_judge=(0.98, 0.79),
        put_in=("judge/change", "judge/held_out"),
    ),
    Setting("judges .9 to .8, in debates", falling(0.9, 0.8), put_in=("judge/change",)),
    Setting("judges .9, .5 on one kind of fault", judge(0.9), put_in=("judge/blind_fault",), unseen=0.5),
    Setting("judges .95, .7 on one kind of fault", judge(0.95), put_in=("judge/weak_fault",), unseen=0.7),
    Setting("accuracy +.05", judge(0.7), 0.05, put_in=("learned/held_out", "learned/training")),
    Setting("accuracy +.15", judge(0.7), 0.15, put_in=("learned/held_out", "learned/training")),
)


@dataclass(slots=True)
class Pages:
    """Draws pages: problems are the same in all of them, debates are not."""

    solved: Sequence[Solved] = field(default_factory=lambda: two_kinds(made_solutions(60, seed=0)))

    def draw(self, setting: Setting, seed: int) -> Sequence[Finding]:
        """Return everything that a page looked for, with what it came to."""
        judged, run = self._debates(setting, seed), training(setting, np.random.default_rng(seed))
        return findings([*judgment_looks(judged), *training_looks(run, judged.run)])

    def _debates(self, setting: Setting, seed: int) -> Judged:
        study, environment = Study(), load_environment("gsm8k")
        todo = list(islice(cycle(self.solved), setting.debates))
        for step, part in enumerate(np.array_split(np.arange(len(todo)), STEPS)):
            judges = setting.judges(step / (STEPS - 1))
            unseen = judges if setting.unseen is None else replace(judges, accuracy=setting.unseen)
            debates = (
                debate
                for number, (of, voting) in enumerate(((False, judges), (True, unseen)))
                for debate in replay_solutions(
                    [todo[index] for index in part if hides(todo[index]) == of],
                    voting,
                    CONFIG,
                    environment,
                    seed=2 * (seed * STEPS + step) + number,
                )
            )
            for debate in debates:
                _, correct = grade_debate(environment, debate)
                rewards = score_debate(debate, correct, RewardConfig())
                study.add(Record(debate, step, debate.problem.id, correct, rewards))
        return Judged("run", study, figures_of(study))


def hides(solved: Solved) -> bool:
    """Whether the wrong solutions of a problem show no fault."""
    return int(solved.problem.id.rpartition("/")[2]) % 4 == 0


def two_kinds(solved: Sequence[Solved]) -> list[Solved]:
    """The same solutions; wrong ones that show no fault lose their steps, others hold a false equation."""
    return [
        replace(one, texts=tuple(map(_unseen, one.texts, one.expected))) if hides(one) else one
        for one in solved
    ]


def _unseen(text: str, right: bool | None) -> str:
    return text if right else "So it is " + text.rpartition("So it is ")[2]


def training(setting: Setting, rng: np.random.Generator) -> Run:
    """A run of 60 steps of 96 answers, evaluated on 200 problems before and after; difficulty differs."""
    steps = np.arange(60)
    chance = 0.4 + setting.gain * steps / 59
    curves = Curves(steps, {"accuracy": rng.binomial(96, chance) / 96})
    hard = rng.beta(1.0, 1.5, 200)
    held_out = [
        evaluation(60 * after, np.clip(hard + after * setting.gain, 0, 1), setting.held_out_judge[after], rng)
        for after in (0, 1)
    ]
    return Run(Path("run"), "run", curves, held_out=held_out)


def evaluation(
    step: int, chances: np.ndarray, judging: float, rng: np.random.Generator, answers: int = 4, votes: int = 3
) -> HeldOut:
    """One evaluation: answers of one agent, the winner, and votes on a third of the problems."""
    names = [f"p{number}" for number in range(len(chances))]
    right = rng.binomial(answers, chances)
    figures = {
        DIRECT: {name: (float(count), answers) for name, count in zip(names, right, strict=True)},
        WINNER: {name: (float(won), 1) for name, won in zip(names, rng.random(200) < chances, strict=True)},
        JUDGE: {name: (float(rng.binomial(votes, judging)), votes) for name in names[::3]},
    }
    return HeldOut(step=step, problems=dict.fromkeys(names, ""), figures=figures)


def shares(pages: Pages, setting: Setting, count: int, first_seed: int) -> list[Figure]:
    """Return the share of pages with what was put in, and with anything false."""
    told = [
        {finding.look.kind for finding in pages.draw(setting, first_seed + page) if finding.state == "found"}
        for page in range(count)
    ]
    true = {*TRUE_OF_ALL, *setting.put_in}
    if setting.unseen is not None:
        true |= {"judge/blind_fault", "judge/weak_fault"}
    if setting.gain or "judge" in "".join(setting.put_in):
        true |= {"collusion/gap"}  # judges that change move praise against truth
    counts = {f"{setting.name}: anything false": sum(bool(found - true) for found in told)}
    counts |= {f"{setting.name}: {kind}": sum(kind in found for found in told) for kind in setting.put_in}
    return [
        Figure(name, number / count, "pages", count, *wilson(number / count, count))
        for name, number in counts.items()
    ]


def main() -> None:
    """Print the shares of every setting."""
    command = parser(__doc__ or "")
    command.add_argument("--pages", type=int, default=200)
    command.add_argument("--first-seed", type=int, default=0)
    command.add_argument("--only", default="", help="settings whose name begins so")
    chosen = command.parse_args()
    figures: list[Figure] = []
    pages, start = Pages(), perf_counter()
    for setting in SETTINGS:
        if setting.name.startswith(chosen.only):
            figures += shares(pages, setting, chosen.pages, chosen.first_seed)
    figures.append(Figure("time", perf_counter() - start, "s", len(figures)))
    report("Findings of simulated pages", figures, chosen.json)


if __name__ == "__main__":
    main()
