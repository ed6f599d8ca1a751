"""The training problems of a mixture of data sets (``env.mix``)."""

from __future__ import annotations

from debate import Problem
from debate.seeds import derive_seed
from debate_rl.config import Config
from debate_rl.config.sampling import MixedSet
from envs import DataError, Environment, load_environment
from envs.mixture import Mixture


def load_mixture(config: Config) -> tuple[Mixture, tuple[Problem, ...]]:
    """Return what grades the problems of a mixture, and the problems, those of a set together.

    DataError for a set without problems, and for a problem that two sets have.
    """
    sets = {one.name: _environment(one, index) for index, one in enumerate(config.env.mix or ())}
    problems: list[Problem] = []
    set_of: dict[str, str] = {}
    for one in config.env.mix or ():
        seed = derive_seed(config.seed, "train", one.name)
        own = sets[one.name].problems(split=one.split, limit=one.limit, seed=seed)
        if not own:
            raise DataError(f"env.mix, {one.name}: split {one.split!r} holds no problems to train on")
        for problem in own:
            if (other := set_of.setdefault(problem.id, one.name)) != one.name:
                raise DataError(
                    f"env.mix: the problem {problem.id!r} is in {other} and in {one.name}; choose levels, "
                    "subjects or splits that do not overlap"
                )
        problems += own
    return Mixture(sets, set_of), tuple(problems)


def _environment(one: MixedSet, index: int) -> Environment:
    options: dict[str, object] = {
        "path": one.path,
        "levels": one.levels,
        "subjects": one.subjects,
        "fields": one.fields,
    }
    return load_environment(one.kind, key=f"env.mix.{index}.kind", **options)
