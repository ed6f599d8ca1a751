"""Which problems the steps of a run are about: epochs, mixtures, orders and gates in one sampler.

Each set of problems has a cursor in an endless stream of its epochs. A step takes from each set as many as
its weight gives, in the order of the stream, and skips what a gate does not admit. So what a step draws is
a function of the seed, its number, the cursors, and what the gates remember; a checkpoint holds the last two.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from math import floor
from typing import NamedTuple

from debate import Debate
from debate.ramps import value_at
from debate.seeds import derive_seed
from debate_rl.config import Config
from debate_rl.config.sampling import Order, knots
from debate_rl.difficulty import Difficulty, read_difficulty
from debate_rl.evaluation.grading import Grades, of_learners
from debate_rl.problems import Problems
from debate_rl.runs.trainer_state import Memory, SamplerState
from debate_rl.training.gates import Gate, gates_of, levels_at
from debate_rl.training.step_problems import epoch_order, spare_problems
from envs import DataError
from rewards import Truth
from rewards.truth import right_share

NEWEST = 0.5
"""Weight of the newest debates of a problem in its recent pass rate."""


class Draw(NamedTuple):
    """A step's problems, as indices of the run's training problems, and others in place of silent ones."""

    problems: tuple[int, ...]
    spare: tuple[int, ...] = ()


class Drawn(NamedTuple):
    """A draw, the cursors after it, and how many candidates the gates were offered, admitted and let by."""

    draw: Draw
    cursors: Mapping[str, int]
    counts: Counter[str]


@dataclass
class Sampler:
    """The problems of a run's steps. ``step``: the next one; ``drawn``: problems of those that are done."""

    config: Config
    data: Problems
    step: int = 0
    drawn: int = 0
    cursors: Mapping[str, int] = field(default_factory=dict)
    memory: dict[str, Memory] = field(default_factory=dict)
    _later: dict[int, Drawn] = field(default_factory=dict, repr=False)
    _epochs: dict[tuple[str, int], list[int]] = field(default_factory=dict, repr=False)

    def draw(self, step: int) -> Draw:
        """Return the problems of the next step, or of one after it, however often it is asked."""
        return self._drawn(step).draw

    def remember(self, step: int, debates: Sequence[Debate], correct: Sequence[Grades | None]) -> None:
        """Take in what a step's debates came to, where a gate looks at that."""
        if not self.config.sampling.remembers:
            return
        last: dict[str, list[Truth]] = defaultdict(list)
        for debate, table in zip(debates, correct, strict=True):
            last[debate.problem.id].extend(row[-1] for row in of_learners(debate, table) or ())
        for id, grades in last.items():
            self.memory[id] = self._remembered(self.memory.get(id), step, right_share(grades))

    def _remembered(self, before: Memory | None, step: int, newest: float | None) -> Memory:
        if newest is None or before is None or before.rate is None:
            known = before.rate if before and newest is None else newest
            return Memory(step, known, newest)
        return Memory(step, (1 - NEWEST) * before.rate + NEWEST * newest, newest)

    def finish(self, step: int) -> dict[str, float]:
        """Go on behind a step that is done; return its metrics."""
        drawn = self._drawn(step)
        self._later = {later: one for later, one in self._later.items() if later > step}
        self.cursors, self.step = drawn.cursors, step + 1
        self.drawn += self.config.train.batch_size
        return {"epoch": self.drawn / len(self.data.train)} | self._metrics(step, drawn)

    def state(self) -> SamplerState | None:
        """Return what a checkpoint keeps beside the problems drawn."""
        return None if self._plain else SamplerState(dict(self.cursors), dict(self.memory))

    def restore(self, step: int, drawn: int, state: SamplerState | None) -> None:
        """Go on after the steps of a checkpoint."""
        self.step, self.drawn, self._later = step, drawn, {}
        self.cursors = dict(state.cursors) if state else {"": drawn}
        self.memory = dict(state.memory) if state else {}

    @cached_property
    def _plain(self) -> bool:
        """Whether every problem comes once in an epoch, shuffled: the problems drawn say where it is."""
        return not self.gates and self._order == "random" and self.config.env.mix is None

    @cached_property
    def _order(self) -> Order:
        return self.config.env.difficulty.order if self.config.env.difficulty else "random"

    @cached_property
    def _rows(self) -> Mapping[str, Difficulty]:
        settings = self.config.env.difficulty
        return read_difficulty(settings.path).rows if settings else {}

    @cached_property
    def gates(self) -> Mapping[str, Gate]:
        """The gates that the configuration sets, by name."""
        return gates_of(self.config, self._rows)

    @cached_property
    def sets(self) -> Mapping[str, tuple[int, ...]]:
        """The indices of each set's problems; "" is the one set of a run without a mixture."""
        sets: dict[str, list[int]] = defaultdict(list)
        for index, problem in enumerate(self.data.train):
            sets[self.data.set_of.get(problem.id, "")].append(index)
        return {name: tuple(indices) for name, indices in sets.items()}

    def weights(self, step: int) -> dict[str, float]:
        """Return the weights of the sets at a step; they sum to 1."""
        given = {one.name: value_at(one.weight, step) for one in self.config.env.mix or ()} or {"": 1.0}
        return {name: weight / sum(given.values()) for name, weight in given.items()}

    def admits_any(self, name: str, step: int) -> bool:
        """Return whether a set has a problem that the gates admit at a step, nothing being remembered."""
        return any(self._admit(index, step, Counter()) for index in self.sets.get(name, ()))

    def _drawn(self, step: int) -> Drawn:
        if step not in self._later:
            before = self.cursors if step == self.step else self._drawn(step - 1).cursors
            self._later[step] = self._draw_after(step, before)
        return self._later[step]

    def _draw_after(self, step: int, before: Mapping[str, int]) -> Drawn:
        train, seed = self.config.train, self.config.seed
        cursors, counts = dict(before), Counter[str]()
        chosen = self._take(step, train.batch_size, cursors, counts)
        if not train.dynamic_sampling:
            return Drawn(Draw(chosen), cursors, counts)
        if self._plain:
            spare = spare_problems(
                len(self.data.train), chosen, size=train.dynamic_sampling, seed=seed, step=step
            )
        else:
            further = self._take(step, train.dynamic_sampling, dict(cursors), Counter())
            spare = tuple(index for index in dict.fromkeys(further) if index not in chosen)
        return Drawn(Draw(chosen, tuple(spare)), cursors, counts)

    def _take(self, step: int, size: int, cursors: dict[str, int], counts: Counter[str]) -> tuple[int, ...]:
        """Return so many problems by the weights of the sets; cursors and counts go on."""
        weights = self.weights(step)
        coin = random.Random(derive_seed(self.config.seed, "mixture", step)).random()
        sizes = parts_of(size, list(weights.values()), coin)
        return tuple(
            index
            for name, part in zip(weights, sizes, strict=True)
            for index in self._take_from(name, part, step, cursors, counts)
        )

    def _take_from(
        self, name: str, size: int, step: int, cursors: dict[str, int], counts: Counter[str]
    ) -> list[int]:
        """Return the next problems of a set that all gates admit.

        Where a whole epoch has none, the gates are lifted for what the step still lacks.
        """
        chosen: list[int] = []
        refused = 0
        while len(chosen) < size:
            index = self._at(name, cursors.get(name, 0))
            cursors[name] = cursors.get(name, 0) + 1
            admitted, lifted = self._admit(index, step, counts), refused >= len(self.sets[name])
            refused += not (admitted or lifted)
            if admitted or lifted:
                chosen.append(index)
                counts["lifted"] += not admitted
                refused = refused if lifted else 0
        return chosen

    def _admit(self, index: int, step: int, counts: Counter[str]) -> bool:
        """Return whether all gates admit a problem, and count what each says."""
        problem = self.data.train[index]
        memory = self.memory.get(problem.id)
        said = {name: gate(problem, step, memory) for name, gate in self.gates.items()}
        counts.update({"offered": 1} | {f"gate/{name}": int(said[name]) for name in said})
        return all(said.values())

    def _at(self, name: str, cursor: int) -> int:
        """Return the problem of a set at a cursor of its endless stream of epochs."""
        epoch, index = divmod(cursor, len(self.sets[name]))
        if (name, epoch) not in self._epochs:
            self._epochs = {key: order for key, order in self._epochs.items() if key[0] != name}
            self._epochs[name, epoch] = self._ordered(name, epoch)
        return self._epochs[name, epoch][index]

    def _ordered(self, name: str, epoch: int) -> list[int]:
        """Return the problems of a set in the order of an epoch; those of one rank are shuffled."""
        members = self.sets[name]
        drawn_by = ("epoch", name, epoch) if name else ("epoch", epoch)
        order = [members[i] for i in epoch_order(len(members), self.config.seed, *drawn_by)]
        return order if self._order == "random" else sorted(order, key=self._rank)

    def _rank(self, index: int) -> float:
        """Return where a problem stands in an order that is not random; one not measured is in the middle."""
        row = self._rows.get(self.data.train[index].id)
        if row is None:
            return 0.5 if self._order != "easy_first" else -0.5
        ranks = {"easy_first": -row.pass_rate, "hard_first": row.pass_rate}
        return ranks.get(self._order, row.missing_share)

    def _metrics(self, step: int, drawn: Drawn) -> dict[str, float]:
        counts = drawn.counts
        figures = {f"gate/{name}/admitted": counts[f"gate/{name}"] / counts["offered"] for name in self.gates}
        figures |= {"gate/lifted": float(counts["lifted"])} if self.gates else {}
        if self.config.env.mix is None:
            return figures
        problems = [self.data.train[index].id for index in drawn.draw.problems]
        names = Counter(self.data.set_of[id] for id in problems)
        for name, weight in self.weights(step).items():
            figures |= {f"weight/set/{name}": weight, f"share/set/{name}": names[name] / len(problems)}
        return figures


def parts_of(size: int, weights: Sequence[float], coin: float) -> list[int]:
    """Return how many of ``size`` each weight gets: whole numbers whose means are ``size * weight``.

    Systematic sampling: one coin in [0, 1) decides all remainders, so no part is off by one or more.
    ``weights`` sum to 1.

    >>> parts_of(8, [0.7, 0.3], 0.0), parts_of(8, [0.7, 0.3], 0.5), parts_of(4, [0.0, 1.0], 0.9)
    ([5, 3], [6, 2], [0, 4])
    """
    ends = [floor(size * end + coin) for end in accumulate(weights)]
    ends[-1] = size  # sums of shares are 1 but for rounding
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def check_sampling(config: Config, data: Problems) -> None:
    """Refuse sets and gates that at some step leave nothing to draw; DataError says which, and when."""
    sampler, sampling = Sampler(config, data), config.sampling
    bounds = (sampling.measured_at_least, sampling.measured_at_most)
    steps = {*knots([*bounds, *(one.weight for one in config.env.mix or ())])}
    steps |= {first for first, _ in sampling.levels or ()}
    for step in sorted(step for step in steps if step < max(config.train.steps, 1)):
        _refuse_unknown_levels(config, data, step)
        for name, weight in sampler.weights(step).items():
            if weight and not sampler.admits_any(name, step):
                what = f"the set {name!r} of env.mix" if name else "the training problems"
                raise DataError(
                    f"sampling: at step {step} no problem of {what} passes {' and '.join(sampler.gates)}"
                    if name in sampler.sets
                    else f"env.mix: of the set {name!r} no problem is left to train on; leave it out"
                )


def _refuse_unknown_levels(config: Config, data: Problems, step: int) -> None:
    known = {problem.level for problem in data.train if problem.level}
    if config.sampling.levels is None:
        return
    if unknown := sorted(levels_at(config.sampling, step) - known):
        raise DataError(
            f"sampling.levels: from step {step} on names level {unknown[0]!r}, and no problem has it; "
            f"levels: {', '.join(sorted(known)) or 'none'}"
        )
