"""Collapse detectors that look at a run while it goes on, and what their alarms do (``train.on_alarm``).

A detector speaks once. Its alarm is one line on the screen and one of alarms.jsonl; a run that resumes sets
aside the alarms of the steps that it does again. A rollback is what a resume does, from an earlier checkpoint
and with a lower learning rate: later checkpoints are renamed, run.json keeps the end of the start, and the
run is opened again. Killed at any point of it, the run resumes to the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from debate_rl.alarms import Reading, alarms, readings
from debate_rl.alarms.curves import joined
from debate_rl.alarms.metrics_file import finite, read_metrics
from debate_rl.alarms.settings import flat, open_advice
from debate_rl.alarms.stored import read_stored
from debate_rl.config.ends import Action
from debate_rl.formatting import short
from debate_rl.metrics.step_log import read_rows
from debate_rl.runs.checkpoint import checkpoints, step_of
from debate_rl.runs.folder import Start, ends_by, plain_config
from debate_rl.training.alarm_actions import alarm_actions
from debate_rl.training.ends import End
from learner.update.config import LearnerConfig
from learner.update.worst import Against
from transcripts.append import LineFile, free_name

if TYPE_CHECKING:
    from debate_rl.training.session import Session

DEBATES_EVERY = 10
"""Steps between two looks of the detectors at stored debates."""
MOST_ROLLBACKS = 1
"""A later alarm that asks for a rollback ends the run."""
LOWER = 0.5
"""What a rollback multiplies the learning rate with."""
FAR_FROM: dict[str, Against] = {
    **dict.fromkeys(("kl", "not_finite"), "reference"),
    **dict.fromkeys(("ratio", "gradient"), "sampler"),
    **dict.fromkeys(("mismatch", "logprob"), "sampler_before"),
}
"""What the tokens are compared with that an alarm of a detector names."""
SAID = 3
"""How many of them are said; alarms.jsonl has all."""
WEIGHT: dict[Action, int] = {"warn": 0, "checkpoint": 1, "rollback": 2, "stop": 3}
"""Of several alarms at a step the heaviest action is taken."""


def lowered(settings: LearnerConfig, starts: Sequence[Start]) -> LearnerConfig:
    """Return the learner's settings with half the learning rate for each rollback of the run."""
    factor = LOWER ** ends_by(starts, "rollback")
    return settings.model_copy(update={"lr": settings.lr * factor})


@dataclass
class Guards:
    """The detectors beside a run; ``known``: those that have spoken."""

    session: Session
    known: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        path = self.session.folder.alarms
        rows = read_rows(path) if path.exists() else []
        self.known.update(str(row.get("detector")) for row in rows)

    def after(self, step: int) -> End | None:
        """Look at the run after a step; do what new alarms ask for, and return the end that they are."""
        actions = alarm_actions(self.session.config)
        fired = [reading for reading in self._looked(step) if reading.detector.name not in self.known]
        new: list[tuple[Reading, Action]] = [(reading, actions[reading.detector.name]) for reading in fired]
        for reading, action in new:
            self._note(step, reading, action)
        if not new:
            return None
        return self._act(*max(new, key=lambda alarmed: WEIGHT[alarmed[1]]))

    def _looked(self, step: int) -> list[Reading]:
        """Return the alarms so far: of the metrics, and every few steps of the stored debates as well."""
        config, folder = self.session.config, self.session.folder
        parts = [read_metrics(folder.metrics)[0]]
        if (step + 1) % DEBATES_EVERY == 0:
            parts.append(read_stored(folder.path).curves)
        debates = config.train.adaptive.chunk or config.train.group_size
        return alarms(readings(joined(parts, debates * config.debate.num_agents)))

    def _note(self, step: int, reading: Reading, action: Action) -> None:
        """Say an alarm, and keep it in alarms.jsonl."""
        alarm, detector = reading.alarm, reading.detector
        assert alarm is not None
        fix = open_advice(flat(plain_config(self.session.config)), detector.fix)
        self.session.tracker.say(
            f"alarm at step {alarm.step}: {detector.name} {short(alarm.value)}, threshold "
            f"{short(alarm.threshold)}: {alarm.why}. Proposed: {fix}. train.on_alarm: {action}"
        )
        line = {
            "step": step,
            "detector": detector.name,
            "since": alarm.step,
            "value": alarm.value if abs(alarm.value) < float("inf") else None,
            "threshold": alarm.threshold,
            "why": alarm.why,
            "proposed": fix,
            "action": action,
        }
        if tokens := self._worst_tokens(detector.name, step):
            line["tokens"] = tokens
        with LineFile(self.session.folder.alarms) as file:
            file.write(json.dumps(line, allow_nan=False).encode("ascii"))
        self.known.add(detector.name)

    def _worst_tokens(self, name: str, step: int) -> list[dict[str, object]]:
        """Say which tokens of this step are furthest from what the detector compares with; return them."""
        against = FAR_FROM.get(name)
        if against is None:
            return []
        decode, whose = self.session.tokenizer.decode, against.removesuffix("_before")
        rows = [
            {
                "debate": f"{step}.{far.debate}",
                "turn": f"{far.turn.agent}.{far.turn.round}",
                "token": decode([far.token]),
                "before": decode(list(far.before)),
                "trainer": finite(far.trainer),
                whose: finite(far.other),
            }
            for far in self.session.learner.worst.of(against)
        ]
        for row in rows[:SAID]:
            values = (row["trainer"], row[whose])
            own, other = (short(value) if isinstance(value, float) else "not finite" for value in values)
            self.session.tracker.say(
                f"  token {row['token']!r} after {row['before']!r}: log-probability {own}, {whose} {other} "
                f"(debate {row['debate']}, turn {row['turn']})"
            )
        return rows

    def _act(self, reading: Reading, action: Action) -> End | None:
        alarm, name = reading.alarm, reading.detector.name
        assert alarm is not None
        why = f"{name} at step {alarm.step}: {alarm.why}"
        if action == "rollback":
            return self._rolled_back(alarm.step, why)
        if action != "warn":
            self.session.save_finished()
        return End("alarm", why) if action == "stop" else None

    def _rolled_back(self, since: int, why: str) -> End:
        """Put away the checkpoints from after an alarm's step; where there is no way back, end the run."""
        session = self.session
        kept = checkpoints(session.folder.checkpoints)
        before = [path for path in kept if step_of(path) <= since]
        again = ends_by(session.folder.starts, "rollback") >= MOST_ROLLBACKS
        if again or not before:
            session.save_finished()
            reason = "it was rolled back before" if again else "no checkpoint is from before it"
            return End("alarm", f"{why}; {reason}")
        for path in kept:
            if step_of(path) > since:
                _put_away(path)
        back = step_of(before[-1])
        session.tracker.say(f"rolled back to step {back}; learner.lr is {LOWER:g} of what it was")
        return End("rollback", why, back_to=back)


def _put_away(path: Path) -> None:
    """Give a checkpoint a name under which nothing looks for it."""
    path.rename(free_name(path.with_name(f"{path.name}.rolled_back")))
