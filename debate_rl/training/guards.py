"""Collapse detectors during a run, and the action that each alarm asks for (``train.on_alarm``).

A detector raises at most one alarm. The alarm is printed and written to alarms.jsonl. A resumed run sets
aside the alarms of the steps that it repeats.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from debate_rl.alarms import DETECTORS, Reading, alarms, readings
from debate_rl.alarms.curves import finite, joined, read_metrics
from debate_rl.alarms.settings import flat, open_advice
from debate_rl.config import Config
from debate_rl.config.stages import Action
from debate_rl.formatting import short
from debate_rl.metrics.step_log import read_rows
from debate_rl.runs.checkpoint import checkpoints, step_of
from debate_rl.runs.folder import RunFolder, ends_by, plain_config
from debate_rl.training.run import LOWER, End, Run
from learner.update.tally import Against, WorstTokens
from transcripts.append import LineFile, free_name

FAR_FROM: dict[str, Against] = {
    **dict.fromkeys(("kl", "not_finite"), "reference"),
    **dict.fromkeys(("ratio", "gradient"), "sampler"),
    **dict.fromkeys(("mismatch", "logprob"), "sampler_before"),
}
"""The log-probabilities that the worst tokens of a detector's alarm are far from."""
DEBATES_EVERY = 10
"""Steps between two looks of the detectors at stored debates."""
SAID = 3
"""How many of these tokens are said; alarms.jsonl has all."""
WEIGHT: dict[Action, int] = {"warn": 0, "checkpoint": 1, "rollback": 2, "stop": 3}
"""Of several alarms at a step the heaviest action is taken."""
MOST_ROLLBACKS = 1
"""A later alarm that asks for a rollback ends the run."""


class Raised(NamedTuple):
    """A new alarm: the step since which it holds, why, its action, and the lines to say."""

    since: int
    why: str
    action: Action
    lines: list[str]

    @property
    def weight(self) -> int:
        """The severity of the action."""
        return WEIGHT[self.action]


class Guards:
    """The detectors of a run. ``known`` holds the detectors that have already raised an alarm."""

    def __init__(self, config: Config, folder: RunFolder) -> None:
        self._config, self._folder = config, folder
        rows = read_rows(folder.alarms) if folder.alarms.exists() else []
        self.known = {str(row.get("detector")) for row in rows}
        given = config.train.on_alarm
        actions: dict[str, Action] = given if isinstance(given, dict) else dict.fromkeys(DETECTORS, given)
        self._actions = actions

    def look(self, step: int, worst: WorstTokens, decode: Callable[[list[int]], str]) -> list[Raised]:
        """Write the new alarms after a step to alarms.jsonl, and return them.

        The detectors read the metrics, and every few steps the stored debates as well. ``worst`` holds the
        tokens of the step whose log-probabilities are furthest apart.
        """
        train, parts = self._config.train, [read_metrics(self._folder.metrics)[0]]
        if (step + 1) % DEBATES_EVERY == 0:
            from debate_rl.alarms.stored import read_stored

            parts.append(read_stored(self._folder.path).curves)
        debates = train.chunk
        found = alarms(readings(joined(parts, debates * self._config.debate.num_agents)))
        new = [reading for reading in found if reading.detector.name not in self.known]
        return [self._raised(step, reading, worst, decode) for reading in new]

    def _raised(
        self, step: int, reading: Reading, worst: WorstTokens, decode: Callable[[list[int]], str]
    ) -> Raised:
        alarm, detector = reading.alarm, reading.detector
        assert alarm is not None
        fix = open_advice(flat(plain_config(self._config)), detector.fix)
        action = self._actions.get(detector.name, "warn")
        line: dict[str, Any] = {
            "step": step,
            "detector": detector.name,
            "since": alarm.step,
            "value": alarm.value if abs(alarm.value) < float("inf") else None,
            "threshold": alarm.threshold,
            "why": alarm.why,
            "proposed": fix,
            "action": action,
        }
        against = FAR_FROM.get(detector.name)
        tokens = list(token_rows(step, worst, against, decode)) if against else []
        if tokens:
            line["tokens"] = tokens
        with LineFile(self._folder.alarms) as file:
            file.write(json.dumps(line, allow_nan=False).encode("ascii"))
        self.known.add(detector.name)
        said = (
            f"alarm at step {alarm.step}: {detector.name} {short(alarm.value)}, threshold "
            f"{short(alarm.threshold)}: {alarm.why}. Proposed: {fix}. train.on_alarm: {action}"
        )
        why = f"{detector.name} at step {alarm.step}: {alarm.why}"
        return Raised(alarm.step, why, action, [said, *map(_token_line, tokens[:SAID])])


def token_rows(
    step: int, worst: WorstTokens, against: Against, decode: Callable[[list[int]], str]
) -> Iterator[dict[str, Any]]:
    """Yield the tokens of a step that are furthest from a reference or from the sampler."""
    for far in worst.of(against):
        yield {
            "debate": f"{step}.{far.debate}",
            "turn": f"{far.turn.agent}.{far.turn.round}",
            "token": decode([far.token]),
            "before": decode(list(far.before)),
            "trainer": finite(far.trainer),
            against.removesuffix("_before"): finite(far.other),
        }


def _token_line(row: dict[str, Any]) -> str:
    whose = next(name for name in ("reference", "sampler") if name in row)
    own, other = (
        short(value) if isinstance(value, float) else "not finite" for value in (row["trainer"], row[whose])
    )
    return (
        f"  token {row['token']!r} after {row['before']!r}: log-probability {own}, {whose} {other} "
        f"(debate {row['debate']}, turn {row['turn']})"
    )


def act_on(run: Run, raised: Sequence[Raised]) -> End | None:
    """Print new alarms and take the most severe of their actions; return the run's end, if it causes one."""
    for one in raised:
        for line in one.lines:
            run.tracker.say(line)
    if not raised:
        return None
    alarm = max(raised, key=lambda one: one.weight)
    if alarm.action == "rollback":
        return _rolled_back(run, alarm.since, alarm.why)
    if alarm.action != "warn":
        run.save_finished()
    return End("alarm", alarm.why) if alarm.action == "stop" else None


def _rolled_back(run: Run, since: int, why: str) -> End:
    """Rename the checkpoints after an alarm's step; if no checkpoint is left to return to, end the run.

    A rollback resumes from an earlier checkpoint with a lower learning rate. run.json records that this
    start ended in a rollback, and the run is opened again. A run killed at any point resumes to the same
    state.
    """
    again = ends_by(run.folder.starts, "rollback") >= MOST_ROLLBACKS
    back = None if again else put_away_checkpoints(run.folder.checkpoints, since)
    if back is None:
        run.save_finished()
        reason = "it was rolled back before" if again else "no checkpoint is from before it"
        return End("alarm", f"{why}; {reason}")
    run.tracker.say(f"rolled back to step {back}; learner.lr is {LOWER:g} of what it was")
    return End("rollback", why, back_to=back)


def put_away_checkpoints(folder: Path, since: int) -> int | None:
    """Rename the checkpoints written after step ``since``; return the step of the newest one left.

    If every checkpoint is later than ``since``, rename nothing and return None.
    """
    kept: Sequence[Path] = checkpoints(folder)
    before = [path for path in kept if step_of(path) <= since]
    if not before:
        return None
    for path in kept[len(before) :]:
        path.rename(free_name(path.with_name(f"{path.name}.rolled_back")))
    return step_of(before[-1])
