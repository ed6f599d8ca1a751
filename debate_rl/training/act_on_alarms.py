"""Act on alarms during a run (``train.on_alarm``): warn, save a checkpoint, roll the run back, or stop it.

A detector raises at most one alarm, which is printed and written to alarms.jsonl. A resumed run sets aside
the alarms of the steps that it repeats.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from debate_rl.alarms import DETECTORS, Reading, alarms, readings
from debate_rl.alarms.curves import finite, joined, read_metrics
from debate_rl.alarms.settings import flat, open_advice
from debate_rl.config.stages import Action
from debate_rl.formatting import short
from debate_rl.metrics.step_log import read_rows
from debate_rl.runs.checkpoint import checkpoints, step_of
from debate_rl.runs.folder import ends_by, plain_config
from debate_rl.training.run import LOWER, End, Run
from learner.update.tally import Against, WorstTokens
from transcripts.append import LineFile, free_name

FAR_FROM: dict[str, Against] = {
    **dict.fromkeys(("kl", "not_finite"), "reference"),
    **dict.fromkeys(("ratio", "gradient"), "sampler"),
    **dict.fromkeys(("mismatch", "logprob"), "sampler_before"),
}
"""By detector: the log-probabilities that are compared with the trainer's to find an alarm's worst tokens."""
DEBATES_EVERY = 10
"""Number of steps between two checks of stored debates by the detectors."""
TOKENS_PRINTED = 3
"""Number of worst tokens that are printed with an alarm; alarms.jsonl has all of them."""
SEVERITY: dict[Action, int] = {"warn": 0, "checkpoint": 1, "rollback": 2, "stop": 3}
"""Severity by action. If several alarms come in one step, only the most severe action is taken."""
MOST_ROLLBACKS = 1
"""Maximum number of rollbacks of a run. The next alarm that asks for one ends the run."""


class Raised(NamedTuple):
    """A new alarm. ``since``: the step at which the detector fires, which may precede the current step."""

    since: int
    why: str
    action: Action


class Guards:
    """The detectors of a run. ``known``: the detectors that have already raised an alarm."""

    def __init__(self, run: Run) -> None:
        self._run, self._config, self._folder = run, run.config, run.folder
        rows = read_rows(run.folder.alarms) if run.folder.alarms.exists() else []
        self.known = {str(row.get("detector")) for row in rows}
        given = run.config.train.on_alarm
        self._actions: dict[str, Action] = (
            given if isinstance(given, dict) else dict.fromkeys(DETECTORS, given)
        )

    def act(self, step: int) -> End | None:
        """Take the most severe action of the alarms that are new after a step.

        Return the end of the run, or None if the run continues.
        """
        raised = [self._raised(step, reading) for reading in self._new(step)]
        if not raised:
            return None
        alarm = max(raised, key=lambda one: SEVERITY[one.action])
        if alarm.action == "rollback":
            return self._roll_back(alarm)
        if alarm.action != "warn":
            self._run.save_finished()
        return End("alarm", alarm.why) if alarm.action == "stop" else None

    def _roll_back(self, alarm: Raised) -> End:
        """Rename the checkpoints after an alarm's step; if no checkpoint is left to return to, end the run.

        A rollback resumes from an earlier checkpoint with a lower learning rate. run.json records that this
        launch ended in a rollback, and the run is opened again. A run that is killed at any point resumes to
        the same state.
        """
        again = ends_by(self._folder.starts, "rollback") >= MOST_ROLLBACKS
        kept = checkpoints(self._folder.checkpoints)
        before = [path for path in kept if step_of(path) <= alarm.since]
        if again or not before:
            self._run.save_finished()
            reason = "the run was rolled back before" if again else "no checkpoint is older than the alarm"
            return End("alarm", f"{alarm.why}; {reason}")
        for path in kept[len(before) :]:
            path.rename(free_name(path.with_name(f"{path.name}.rolled_back")))
        back = step_of(before[-1])
        self._run.tracker.say(f"rolled back to step {back}; learner.lr is multiplied by {LOWER:g}")
        return End("rollback", alarm.why, back_to=back)

    def _new(self, step: int) -> list[Reading]:
        """Return the readings with a new alarm: of the metrics, and every few steps of the stored debates."""
        train, parts = self._config.train, [read_metrics(self._folder.metrics)[0]]
        if (step + 1) % DEBATES_EVERY == 0:
            from debate_rl.alarms.stored import read_stored

            parts.append(read_stored(self._folder.path).curves)
        found = alarms(readings(joined(parts, train.chunk * self._config.debate.num_agents)))
        return [reading for reading in found if reading.detector.name not in self.known]

    def _raised(self, step: int, reading: Reading) -> Raised:
        """Write an alarm to alarms.jsonl and print it."""
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
        worst, decode = self._run.learner.worst, self._run.tokenizer.decode
        tokens = list(token_rows(step, worst, against, decode)) if against else []
        if tokens:
            line["tokens"] = tokens
        with LineFile(self._folder.alarms) as file:
            file.write(json.dumps(line, allow_nan=False).encode("ascii"))
        self.known.add(detector.name)
        title, text = f"{detector.name} at step {alarm.step}", f"{alarm.why}. Proposed: {fix}"
        self._run.tracker.alarm(step, title, text, ends=action in ("stop", "rollback"))
        say = self._run.tracker.say
        say(
            f"alarm at step {alarm.step}: {detector.name} {short(alarm.value)}, threshold "
            f"{short(alarm.threshold)}: {text}. train.on_alarm: {action}"
        )
        for row in tokens[:TOKENS_PRINTED]:
            say(_token_line(row))
        return Raised(alarm.step, f"{title}: {alarm.why}", action)


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
