"""Train the stages of a curriculum, each from the weights of the previous stage.

The configuration and curriculum.json determine the next stage. The file is written before and after each
stage, so a curriculum resumes after a crash.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from debate.seeds import derive_seed
from debate.settings import did_you_mean
from debate_rl.config import Config
from debate_rl.config.stages import TABLES, StageConfig, Table
from debate_rl.curriculum.promotion import after, demotes, ended, look_at
from debate_rl.curriculum.record import (
    NAME,
    Curriculum,
    CurriculumError,
    Visit,
    read_curriculum,
    stage_folder,
    write_curriculum,
)
from debate_rl.formatting import counted
from debate_rl.metrics.intervals import clustered_mean
from debate_rl.preflight.start import change_rules, checked_problems
from debate_rl.runs.folder import open_run
from debate_rl.sampling.load_problems import Problems
from debate_rl.sft.replies import load_replies
from debate_rl.warm_start.tokenizer import tiny_vocabulary

LOOKED_AT = 256  # replies per source that are checked for a supervised stage before the first stage
Train = Callable[[Config], int | None]
"""Trains or resumes a run. Returns its number of steps, or None if it ended early and must be resumed."""
Tell = Callable[[str], None]
Look = Callable[[Config, Problems], None]
"""Checks the run of a stage and its problems before training. Raises ValueError to refuse the run."""


@dataclass(frozen=True, slots=True)
class Driver:
    """A curriculum in its folder. ``tell`` prints progress. ``only``: the name of the only stage to train."""

    config: Config
    train: Train
    tell: Tell
    look: Look = lambda config, problems: None
    only: str | None = None

    @property
    def run(self) -> Path:
        """The folder of the curriculum."""
        return Path(self.config.run.dir)

    @property
    def stages(self) -> tuple[StageConfig, ...]:
        """The stages of the curriculum."""
        return self.config.stages or ()

    def drive(self) -> Curriculum:
        """Train until the curriculum is complete or a run must be resumed, and return the record.

        Raise RunFolderError if the folder contains another curriculum or is used by another process.
        """
        names = [stage.name for stage in self.stages]
        if self.only is not None and self.only not in names:
            hint = did_you_mean(self.only, names, f"valid: {', '.join(names)}")
            raise ValueError(f"stage={self.only}: {hint}")
        check_stage_runs(self.config, self.look, over=self._over())
        rules = change_rules(self.config)
        with open_run(self.run, self.config, seed=self.config.seed, rules=rules) as folder:
            folder.record()
            record = read_curriculum(self.run) or Curriculum()
            self._check_stages(record)
            while (visit := self._next(record.visits)) is not None and self._wanted(visit, record):
                record = _with(record, visit)
                write_curriculum(self.run, record)
                done = self._trained(visit)
                if done is None:
                    break
                record = _with(record, done)
                write_curriculum(self.run, record)
                self.tell(f"stage {done.name} ended: {done.why}")
            return record

    def _over(self) -> set[str]:
        """Return the stages that need no check: finished stages, and stages that ``only`` excludes."""
        visits = (read_curriculum(self.run) or Curriculum()).visits
        over = visits[-1].stage + bool(visits[-1].end) if visits else 0
        others = [stage for stage in self.stages if self.only not in (None, stage.name)]
        return {stage.name for stage in (*self.stages[:over], *others)}

    def _wanted(self, visit: Visit, record: Curriculum) -> bool:
        """Return True if ``only`` includes the visit. Raise ValueError if it needs an earlier stage first."""
        if self.only is None or visit.name == self.only:
            return True
        if any(one.name == self.only and one.end for one in record.visits):
            return False
        first = f"needs the weights of {visit.name!r}, which has not ended; train {visit.name!r} first"
        raise ValueError(f"stage={self.only}: {first}")

    def _check_stages(self, record: Curriculum) -> None:
        """Raise CurriculumError for a stage that the recipe lacks, or for a demotion of the first stage."""
        for index, visit in enumerate(record.visits):
            if not (visit.end == "demoted") <= visit.stage < len(self.stages):
                raise CurriculumError(
                    f"{self.run / NAME}: visits.{index}.stage: {visit.stage} ({visit.name!r}, "
                    f"{visit.end or 'under way'}) does not match the {len(self.stages)} stages of the "
                    f"recipe; choose another run.dir"
                )

    def _next(self, visits: tuple[Visit, ...]) -> Visit | None:
        """Return the unfinished visit, or else the next visit. None if the curriculum is complete."""
        if not visits:
            return self._begun(visits, 0, "")
        if visits[-1].end is None:
            return visits[-1]
        following = after(visits[-1], self.stages)
        return None if following is None else self._begun(visits, *following)

    def _begun(self, visits: tuple[Visit, ...], stage: int, start: str) -> Visit:
        """Return a new visit. Repeated visits of a stage get a new seed."""
        name, number = self.stages[stage].name, len(visits) + 1
        again = any(visit.stage == stage for visit in visits)
        seed = derive_seed(self.config.seed, "visit", number) % (1 << 31) if again else self.config.seed
        folder = f"{number:02d}_{name}"
        return Visit(stage, name, folder, seed, start, demotes(stage, visits, self.stages))

    def _trained(self, visit: Visit) -> Visit | None:
        """Train the run of a visit. Return the visit with its outcome, or None if the run did not end."""
        stage = self.stages[visit.stage]
        config = stage_config(self.config, visit)
        begins = f"from {visit.start}" if visit.start else "from the model of the recipe"
        number = f"stage {visit.stage + 1} of {len(self.stages)}, {stage.name}"
        self.tell(f"{number}: {begins}, in {config.run.dir}: {_until(stage)}")
        steps = self.train(config)
        if steps is None:
            return None
        held_out = Path(config.run.dir) / "held_out.jsonl"
        looked = look_at(target, held_out, steps) if (target := config.train.target) is not None else None
        return ended(visit, stage, steps, looked)


def most_steps(stage: StageConfig) -> str:
    """Return the maximum number of a stage's steps in words."""
    most = "its epochs" if stage.max_steps is None else counted(stage.max_steps, "step")
    return f"{most} of replies" if stage.supervised else most


def _until(stage: StageConfig) -> str:
    if stage.figure is None:
        return most_steps(stage)
    until = f"until the lower end of {stage.figure} reaches {stage.target:g}"
    return f"{stage.min_steps} to {most_steps(stage)}, {until}"


def _with(record: Curriculum, visit: Visit) -> Curriculum:
    """Return the record with a visit, which replaces an older state of the same visit."""
    others = tuple(one for one in record.visits if one.folder != visit.folder)
    return replace(record, visits=(*others, visit))


def stage_config(config: Config, visit: Visit) -> Config:
    """Return the configuration of the run of a visit."""
    run = Path(config.run.dir)
    allowed = config.run.allow_changes
    if "stages" in allowed:
        allowed = (*allowed, *TABLES)
    others: dict[str, Table | int] = {
        "seed": visit.seed,
        "run": {"dir": str(stage_folder(run, visit)), "allow_changes": allowed},
    }
    if visit.start:
        others["warm_start"] = {"from_run": str(run / visit.start)}
    return config.of_stage(visit.stage, demotes=visit.demotes, **others)


def stage_configs(config: Config) -> Iterator[tuple[StageConfig, Config]]:
    """Yield each stage with the configuration of its first visit. Start weights may not exist yet."""
    for index, stage in enumerate(config.stages or ()):
        visit = Visit(index, stage.name, f"{index + 1:02d}_{stage.name}", config.seed)
        yield stage, stage_config(config, visit)


def check_stage_runs(config: Config, look: Look, *, over: Container[str] = ()) -> None:
    """Check all stages except ``over`` before training. Raise ValueError with the name of the stage."""
    vocabulary: tuple[str, ...] | None = None
    for index, (stage, own) in enumerate(stage_configs(config)):
        if stage.name in over:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings are shown at the start of the stage
            try:
                data = _first_replies(own) if stage.supervised else checked_problems(own)[1]
                look(own, data)
                _refuse_out_of_reach(stage, data, own)
                vocabulary = tiny_vocabulary(own) if vocabulary is None else vocabulary
                if tiny_vocabulary(own) != vocabulary:
                    raise ValueError(
                        "env: problems that differ from the first stage would change the vocabulary of "
                        "model.tiny; use one env.levels for all stages, and sampling.levels for each"
                    )
            except ValueError as error:
                raise ValueError(f"stages.{index} ({stage.name}): {error}") from error


def _first_replies(config: Config) -> Problems:
    limit = min(config.sft.limit or LOOKED_AT, LOOKED_AT)
    sft = config.sft.model_copy(update={"limit": limit, "held_back": 0})
    return load_replies(config.model_copy(update={"sft": sft}))


def _refuse_out_of_reach(stage: StageConfig, data: Problems, config: Config) -> None:
    """Raise ValueError for a target that is not evaluated, or that a perfect result could not reach."""
    if stage.figure is None or stage.target is None:
        return
    head = stage.figure.partition("/")[0]
    sets = {part.name: part.problems for part in data.evaluated(config)}
    name = "" if head in ("direct", "debate", "judge") else head
    if name not in sets or not config.held_out.every:
        raise ValueError(
            f"figure = {stage.figure!r}: is not evaluated; set held_out.limit and "
            f"held_out.every{' and held_out.more.' + name if name else ''}"
        )
    ids = [problem.id for problem in sets[name]]
    best = clustered_mean([1.0] * len(ids), ids).low
    if not best >= stage.target:
        raise ValueError(
            f"target = {stage.target:g}: cannot be reached: for {len(ids)} right answers to {len(ids)} "
            f"problems the interval begins at {best:.3f}; raise held_out.limit, or lower the target"
        )
