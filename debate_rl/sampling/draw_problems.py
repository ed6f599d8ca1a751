"""Draw the problems of each step: epochs, mixtures, orders, gates, and spares for problems without a signal.

Each set of problems has a cursor in an endless stream of epochs. A step takes problems from each set in
proportion to its weight, in the order of the stream, and skips problems that a gate does not admit. A draw
is therefore a function of the seed, the step, the cursors and the memory of the gates; checkpoints store
cursors and memory. The gate ``towards_half`` follows the variance p (1 - p) of a problem's reward, which
bounds what the problem can teach (arXiv 2504.03380).
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from math import floor
from typing import NamedTuple, TypeAlias

from debate import Problem
from debate.ramps import value_at
from debate.seeds import derive_seed
from debate_rl.config import Config
from debate_rl.config.data import DifficultyConfig, Order, SamplingConfig, knots
from debate_rl.runs.trainer_state import Memory, SamplerState
from debate_rl.sampling.difficulty import Difficulty, read_difficulty
from debate_rl.sampling.load_problems import Problems
from envs import DataError
from envs.data.loading import normal_level
from rewards import Truth
from rewards.truth import right_share

NEWEST = 0.5  # weight of the newest debates of a problem in its recent pass rate
FLOOR = 0.1  # lowest probability of admission, so that no problem is left out for good
Gate: TypeAlias = Callable[[Problem, int, Memory | None], bool]
"""Returns True if the gate admits a problem at a step, given the memory of the problem (None: no memory)."""


class Draw(NamedTuple):
    """Indices of a step's training problems, and of spares that replace problems without a signal."""

    problems: tuple[int, ...]
    spare: tuple[int, ...] = ()


class Drawn(NamedTuple):
    """A draw, the cursors after it, and how many candidates the gates tested and admitted."""

    draw: Draw
    cursors: Mapping[str, int]
    counts: Counter[str]


@dataclass
class Sampler:
    """Draws the problems of a run's steps. ``step``: the next step. ``drawn``: problems of finished steps."""

    config: Config
    data: Problems
    step: int = 0
    drawn: int = 0
    cursors: Mapping[str, int] = field(default_factory=dict)
    memory: dict[str, Memory] = field(default_factory=dict)
    _later: dict[int, Drawn] = field(default_factory=dict, repr=False)
    _epochs: dict[tuple[str, int], list[int]] = field(default_factory=dict, repr=False)

    def draw(self, step: int) -> Draw:
        """Return the problems of the next or a later step. Repeated calls return the same problems."""
        return self._drawn(step).draw

    def remember(self, step: int, graded: Iterable[tuple[str, Sequence[Truth]]]) -> None:
        """Add the final grades of a step's debates, by problem id, to the memory, if a gate needs them."""
        if not self.config.sampling.remembers:
            return
        last: dict[str, list[Truth]] = defaultdict(list)
        for id, grades in graded:
            last[id].extend(grades)
        for id, grades in last.items():
            before, newest = self.memory.get(id), right_share(grades)
            rate = before.rate if before and newest is None else newest
            if newest is not None and before is not None and before.rate is not None:
                rate = (1 - NEWEST) * before.rate + NEWEST * newest
            self.memory[id] = Memory(step, rate, newest)

    def finish(self, step: int) -> dict[str, float]:
        """Advance the cursors after a finished step, and return its metrics."""
        drawn = self._drawn(step)
        self._later = {later: one for later, one in self._later.items() if later > step}
        self.cursors, self.step = drawn.cursors, step + 1
        self.drawn += self.config.train.batch_size
        return {"epoch": self.drawn / len(self.data.train)} | self._metrics(step, drawn)

    def state(self) -> SamplerState | None:
        """Return the state for a checkpoint. None if the number of problems drawn is enough."""
        return None if self._plain else SamplerState(dict(self.cursors), dict(self.memory))

    def restore(self, step: int, drawn: int, state: SamplerState | None) -> None:
        """Restore the state of a checkpoint."""
        self.step, self.drawn, self._later = step, drawn, {}
        self.cursors = dict(state.cursors) if state else {"": drawn}
        self.memory = dict(state.memory) if state else {}

    @cached_property
    def _plain(self) -> bool:
        """True if every epoch is a plain shuffle, so that the number of problems drawn is the whole state."""
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
        """The indices of each set's problems. Without a mixture, all problems are in the set ""."""
        sets: dict[str, list[int]] = defaultdict(list)
        for index, problem in enumerate(self.data.train):
            sets[self.data.set_of.get(problem.id, "")].append(index)
        return {name: tuple(indices) for name, indices in sets.items()}

    def weights(self, step: int) -> dict[str, float]:
        """Return the weights of the sets at a step, which sum to 1."""
        given = {one.name: value_at(one.weight, step) for one in self.config.env.mix or ()} or {"": 1.0}
        return {name: weight / sum(given.values()) for name, weight in given.items()}

    def admits_any(self, name: str, step: int) -> bool:
        """Return True if the gates admit at least one problem of a set at a step."""
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
            rest = [index for index in range(len(self.data.train)) if index not in chosen]
            size = min(train.dynamic_sampling, len(rest))
            spare = random.Random(derive_seed(seed, "spare", step)).sample(rest, size)
        else:
            further = self._take(step, train.dynamic_sampling, dict(cursors), Counter())
            spare = [index for index in dict.fromkeys(further) if index not in chosen]
        return Drawn(Draw(chosen, tuple(spare)), cursors, counts)

    def _take(self, step: int, size: int, cursors: dict[str, int], counts: Counter[str]) -> tuple[int, ...]:
        """Return ``size`` problems, divided among the sets by weight, and advance cursors and counts."""
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
        """Return a set's next problems that all gates admit. Lift the gates after an epoch of rejections."""
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
        problem = self.data.train[index]
        memory = self.memory.get(problem.id)
        said = {name: gate(problem, step, memory) for name, gate in self.gates.items()}
        counts.update({"offered": 1} | {f"gate/{name}": int(said[name]) for name in said})
        return all(said.values())

    def _at(self, name: str, cursor: int) -> int:
        """Return the problem at a cursor of a set's endless stream of epochs."""
        epoch, index = divmod(cursor, len(self.sets[name]))
        if (name, epoch) not in self._epochs:
            self._epochs = {key: order for key, order in self._epochs.items() if key[0] != name}
            order = list(self.sets[name])
            drawn_by = ("epoch", name, epoch) if name else ("epoch", epoch)
            random.Random(derive_seed(self.config.seed, *drawn_by)).shuffle(order)
            if self._order != "random":
                order.sort(key=self._rank)  # problems of one rank stay shuffled
            self._epochs[name, epoch] = order
        return self._epochs[name, epoch][index]

    def _rank(self, index: int) -> float:
        """Return the rank of a problem in a non-random order. Unmeasured problems are in the middle."""
        row = self._rows.get(self.data.train[index].id)
        if self._order == "format_first":
            return 0.5 if row is None else row.missing_share
        return (0.5 if row is None else row.pass_rate) * (-1 if self._order == "easy_first" else 1)

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
    """Return how many of ``size`` items each weight gets: whole numbers with the means ``size * weight``.

    Systematic sampling: ``coin``, uniform in [0, 1), decides all remainders, so each part differs from its
    mean by less than 1. ``weights`` sum to 1.

    >>> parts_of(8, [0.7, 0.3], 0.0), parts_of(8, [0.7, 0.3], 0.5), parts_of(4, [0.0, 1.0], 0.9)
    ([5, 3], [6, 2], [0, 4])
    """
    ends = [floor(size * end + coin) for end in accumulate(weights)]
    ends[-1] = size  # the weights sum to 1 only up to rounding
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def gates_of(config: Config, rows: Mapping[str, Difficulty]) -> dict[str, Gate]:
    """Return the gates that a configuration sets, by name. ``rows``: measured difficulties by problem id."""
    sampling = config.sampling
    gates: dict[str, Gate] = {}
    if sampling.levels is not None:
        gates["levels"] = lambda one, step, _: not one.level or one.level in levels_at(sampling, step)
    if config.env.difficulty is not None and config.env.difficulty.changes:
        gates["measured"] = partial(of_measured, config.env.difficulty, rows)
    if sampling.towards_half:
        gates["towards_half"] = partial(towards_half, config.seed)
    if sampling.rest_steps:
        gates["rested"] = partial(rested, sampling.rest_steps)
    if sampling.retry_steps:
        gates["retried"] = partial(retried, sampling.retry_steps)
    return gates


def levels_at(sampling: SamplingConfig, step: int) -> frozenset[str]:
    """Return the levels that are admitted at a step.

    >>> sampling = SamplingConfig(levels=[[0, [1]], [100, ["Level 4", 5]]])
    >>> [sorted(levels_at(sampling, step)) for step in (0, 99, 100)]
    [['1'], ['1'], ['4', '5']]
    """
    levels = next(levels for first, levels in reversed(sampling.levels or ()) if first <= step)
    return frozenset(map(normal_level, levels))


def of_measured(
    bounds: DifficultyConfig, rows: Mapping[str, Difficulty], problem: Problem, step: int, _: Memory | None
) -> bool:
    """Admit problems with pass rates between the bounds of the step, and unmeasured problems."""
    row = rows.get(problem.id)
    low, high = (value_at(ramp, step) for ramp in (bounds.at_least, bounds.at_most))
    return row is None or low <= row.pass_rate <= high


def towards_half(seed: int, problem: Problem, step: int, memory: Memory | None) -> bool:
    """Admit a problem of pass rate p with probability max(4 p (1 - p), ``FLOOR``), or 1 if p is unknown.

    >>> memory = Memory(0, rate=0.9)
    >>> problems = [Problem(str(i), "?") for i in range(1000)]  # 4 * .9 * .1 = .36
    >>> sum(towards_half(0, problem, 5, memory) for problem in problems)
    336
    """
    if memory is None or memory.rate is None:
        return True
    chance = max(FLOOR, 4 * memory.rate * (1 - memory.rate))
    return random.Random(derive_seed(seed, "towards half", step, problem.id)).random() < chance


def rested(steps: int, problem: Problem, step: int, memory: Memory | None) -> bool:
    """Admit a problem that the last ``steps`` steps did not draw.

    >>> [rested(2, Problem("p", "?"), step, Memory(5)) for step in (6, 7, 8)]
    [False, False, True]
    """
    return memory is None or step - memory.step > steps


def retried(steps: int, problem: Problem, step: int, memory: Memory | None) -> bool:
    """Admit a problem whose newest debates were neither all right nor all wrong, or that rested long enough.

    >>> never, sometimes = Memory(5, 0.5, 0.0), Memory(5, 0.5, 0.25)
    >>> [[retried(2, Problem("p", "?"), step, one) for step in (7, 8)] for one in (never, sometimes)]
    [[False, True], [True, True]]
    """
    return memory is None or memory.newest not in (0.0, 1.0) or step - memory.step > steps


def check_sampling(config: Config, data: Problems) -> None:
    """Raise DataError if sets or gates leave no problem to draw at some step."""
    sampler, sampling = Sampler(config, data), config.sampling
    measured = config.env.difficulty
    bounds = () if measured is None else (measured.at_least, measured.at_most)
    steps = {*knots([*bounds, *(one.weight for one in config.env.mix or ())])}
    steps |= {first for first, _ in sampling.levels or ()}
    known = {problem.level for problem in data.train if problem.level}
    for step in sorted(step for step in steps if step < max(config.train.steps, 1)):
        if sampling.levels is not None and (unknown := sorted(levels_at(sampling, step) - known)):
            raise DataError(
                f"sampling.levels: from step {step} on, no problem has level {unknown[0]!r}; "
                f"levels: {', '.join(sorted(known)) or 'none'}"
            )
        for name, weight in sampler.weights(step).items():
            if weight and not sampler.admits_any(name, step):
                what = f"problem of the set {name!r} of env.mix" if name else "training problem"
                raise DataError(
                    f"sampling: at step {step}, no {what} passes {' and '.join(sampler.gates)}"
                    if name in sampler.sets
                    else f"env.mix: the set {name!r} has no training problems left; remove the set"
                )


def with_epochs(config: Config, problems: int, *, capped: bool | None = None) -> Config:
    """Return the configuration with ``train.steps`` set to the whole steps in ``train.epochs``.

    ``problems``: number of training problems. ``capped``: do not exceed the given ``train.steps`` (None: if
    the configuration sets that key). Raise ValueError for less than one step.

    >>> train = {"epochs": 2, "batch_size": 64}
    >>> with_epochs(Config.model_validate({"model": {"tiny": {}}, "train": train}), 3994).train.steps
    124
    """
    train = config.train
    if train.epochs is None:
        return config
    steps = floor(train.epochs * problems / train.batch_size)
    if not steps:
        raise ValueError(
            f"train.epochs = {train.epochs:g}: for {problems} problems this is less than one step of "
            f"train.batch_size = {train.batch_size}; raise the epochs, or lower the batch size"
        )
    capped = "steps" in train.model_fields_set if capped is None else capped
    done = min(steps, train.steps) if capped else steps
    return config.model_copy(update={"train": train.model_copy(update={"steps": done})})


def length_line(config: Config, problems: int) -> str:
    """Return a line with the steps of an epoch and the epochs of the run.

    >>> train = {"steps": 124, "batch_size": 64}
    >>> length_line(Config.model_validate({"model": {"tiny": {}}, "train": train}), 3994)
    'an epoch is 62.4 steps of 64 problems; 124 steps are 1.99 epochs'
    """
    size, steps = config.train.batch_size, config.train.steps
    each = problems / size
    return f"an epoch is {each:.1f} steps of {size} problems; {steps} steps are {steps / each:.2f} epochs"
