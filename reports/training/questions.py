"""The eight diagnostic questions of the debate training analysis, answered from what a run left."""

from __future__ import annotations

from reports.training.asked import (
    SOURCE,
    UNKNOWN,
    Answer,
    Question,
    early,
    graded,
    late,
    median,
    told,
    whole,
    worst,
)
from reports.training.cells import between, written
from reports.training.changes import change
from reports.training.judged import judged
from reports.training.loading import Run
from reports.training.outputs import changed_outputs


def base_accuracy(run: Run) -> Answer:
    """Q1: what the model could do before training."""
    start = [f for name, f in run.evaluations.items() if "@start" in name or "warm_start" in name]
    if start and "direct/sample" in start[0]:
        value, low, high = start[0]["direct/sample"]
        where = f"evaluated before training: {written(value)}{between(low, high)}"
    else:
        value = early(run, "correct/round_0")
        where = f"first round of the first 5 training steps: {written(value)}"
    if value is None:
        return Answer("unknown", UNKNOWN)
    if value > 0.95:
        return Answer("warn", f"{where}; nearly all is solved already, and little is left to learn")
    return Answer(graded(value, good=0.05, bad=0.01), where)


def valid_comparisons(run: Run) -> Answer:
    """Q2: whether votes are cast and can be read."""
    cast, valid = whole(run, "votes/cast"), whole(run, "votes/valid")
    parsed = late(run, "judge/parsed_share")
    if cast is None and valid is None:
        return Answer("unknown", UNKNOWN)
    if not valid:
        return Answer("bad", f"no valid vote in {run.steps} steps")
    invalid = (cast - valid) / cast if cast else None
    missing = None if parsed is None else 1 - parsed
    words = (
        graded(invalid, good=0.5, bad=0.7),
        graded(missing, good=0.2, bad=0.5),
        "good" if valid else "bad",
    )
    numbers = told(
        ("valid votes", valid), ("invalid share", invalid), ("due and missing, last 10 steps", missing)
    )
    return Answer(worst(*words), numbers)


def diversity(run: Run) -> Answer:
    """Q3: whether the samples of a problem differ."""
    distinct, agreed = late(run, "completions/distinct"), late(run, "debates/agreement")
    wrong = late(run, "debates/wrong_consensus")
    group = run.curves.group
    same = 1.5 / group if group and group > 1 else 0.1
    words = (
        graded(distinct, good=max(0.3, same), bad=same),
        graded(wrong, good=0.2, bad=0.5),
    )
    text = told(
        ("distinct first answers, last 10 steps", distinct),
        ("share of the commonest answer", agreed),
        ("all agree and are wrong", wrong),
    )
    return Answer(worst(*words), text)


def votes_and_truth(run: Run) -> Answer:
    """Q4: whether votes follow truth."""
    found = judged(run)
    accuracy, correlation = found.accuracy, found.correlation
    words = (graded(accuracy, good=0.7, bad=0.55), graded(correlation, good=0.3, bad=0.1))
    text = told(
        ("right votes on decidable pairs", accuracy),
        ("correlation of being the winner and being right", correlation),
        ("winner less a random answer", late(run, "winner/lift")),
    )
    if found.bounds:
        text += f"; accuracy in the sample{found.bounds}"
    if accuracy is not None and accuracy < 0.45:
        text += "; votes are against truth"
    return Answer(worst(*words), text)


def gradients(run: Run) -> Answer:
    """Q5: whether there is a signal, and not too much of it."""
    spreads = {s: median(run, f"reward/{s}/std") for s in ("truth", "peer", "judge")}
    if all(value is None for value in spreads.values()) and run.sample:
        spreads = {s: _spread(run, s) for s in spreads}
    words = [_spread_word(value) for name, value in spreads.items() if name != "judge"]
    norm = median(run, "grad_norm")
    flow = "unknown" if norm is None else "good" if norm > 0 else "bad"
    silent = late(run, "advantage/zero_variance_share/truth")
    known = [word for word in words if word != "unknown"]
    best = "unknown" if not known else "bad" if "bad" in known and len(set(known)) == 1 else worst(*known)
    text = told(
        *((f"spread of {s}", value) for s, value in spreads.items()),
        ("gradient's norm", norm),
        ("groups without variance in truth, last 10 steps", silent),
    )
    return Answer(worst(best, flow, graded(silent, good=0.6, bad=0.95)), text)


def _spread_word(value: float | None) -> str:
    if value is None:
        return "unknown"
    return "bad" if value > 5 else "good" if value > 0.1 else "warn" if value > 0 else "bad"


def _spread(run: Run, stream: str) -> float | None:
    values = [value for _, value in run.sample.rewards.get(stream, [])] if run.sample else []
    mean = sum(values) / len(values) if values else 0.0
    return (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5 if values else None


def loss_and_progress(run: Run) -> Answer:
    """Q6: whether anything gets better; the loss itself says little."""
    loss = change(run.curves.of("loss")[1])
    gain = change(run.curves.of("correct")[1]) or change(run.curves.of("reward/truth/mean")[1])
    if gain is None:
        return Answer(
            "unknown", UNKNOWN if loss is None else f"loss {written(loss.early)} to {written(loss.late)}"
        )
    moved = f"right answers {written(gain.early)} to {written(gain.late)}{between(*_rounded(gain.low, gain.high))}"
    if loss is not None:
        moved += f"; loss {written(loss.early)} to {written(loss.late)} ({loss.direction})"
    words = {"up": "good", "flat": "warn", "down": "bad", "too few steps": "unknown"}
    few = f"; {gain.n} steps are too few to tell" if gain.direction == "too few steps" else ""
    return Answer(words[gain.direction], moved + few)  # type: ignore[arg-type]


def _rounded(low: float, high: float) -> tuple[float, float]:
    return round(low, 3), round(high, 3)


def updating(run: Run) -> Answer:
    """Q7: whether the policy changes at all."""
    updates, kl = whole(run, "updates"), late(run, "kl_mean")
    outputs = changed_outputs(run)
    words = (
        "unknown" if updates is None else "good" if updates > 0 else "bad",
        "unknown" if kl is None else "good" if kl > 1e-6 else "bad",
        "unknown" if outputs is None else "good" if outputs.moved else "warn",
    )
    text = told(("updates", updates), ("KL to the reference, last 10 steps", kl))
    if outputs is not None:
        text += f"; {outputs.text}"
    return Answer(worst(*words), text)  # type: ignore[arg-type]


def overfitting(run: Run) -> Answer:
    """Q8: whether what is gained in training is gained on held-out problems."""
    if run.setting("held_out.path") and run.setting("held_out.path") == run.setting("env.path"):
        same = run.setting("held_out.split") == run.setting("env.split")
        if same:
            return Answer("warn", "trained and evaluated on the same problems: test-time learning")
    fired = [one for one in run.readings if one.detector.name == "held_out" and one.alarm]
    for one in fired:
        assert one.alarm is not None
        return Answer("bad", f"{one.alarm.why} (seen at step {one.alarm.step + 1})")
    trained = change(run.curves.of("correct/round_0")[1])
    steps, values = run.curves.of("eval/direct/sample")
    if not len(values):
        return Answer("unknown", "no held-out evaluation during training")
    at_end = late(run, "correct/round_0")
    text = told(("training, first round, last 10 steps", at_end), ("held out, one answer", float(values[-1])))
    if len(values) < 2 or trained is None or trained.direction == "too few steps":
        return Answer("unknown", f"{text}; too few evaluations or steps to compare gains")
    gained = float(values[-1] - values[0])
    text += f"; gained {written(trained.value)} in training and {written(gained)} held out since step {steps[0] + 1}"
    memorised = trained.direction == "up" and trained.value > 0.05 and gained < trained.value / 4
    return Answer("warn" if memorised else "good", text)


QUESTIONS = (
    Question(
        "Q1",
        "What can the model do before training?",
        "good from .05, bad below .01; above .95 there is little to learn",
        f"{SOURCE}, 2.1: base accuracy of 5%",
        "step:0..4 correct.first:0",
        base_accuracy,
    ),
    Question(
        "Q2",
        "Are comparisons made, and valid?",
        "votes above 0; invalid below .5 (bad above .7); due and missing below .2 (bad above .5)",
        f"{SOURCE}, 2.1",
        "votes:0 OR malformed:>0",
        valid_comparisons,
    ),
    Question(
        "Q3",
        "Do the solutions of a problem differ?",
        "distinct first answers .3 or more (bad below 1.5 / (K N), or .1); all agree and are wrong below .2 (bad above .5)",
        f"{SOURCE}, 2.1; bounds are ours",
        "agreement:1",
        diversity,
    ),
    Question(
        "Q4",
        "Do votes follow truth?",
        "right votes .7 or more (bad below .55); correlation of winner and right .3 or more (bad below .1)",
        f"{SOURCE}, 3.2 and 4.3",
        "judge:<0.5",
        votes_and_truth,
    ),
    Question(
        "Q5",
        "Is there a signal to learn from?",
        "spread of truth and peer rewards .1 to 5, gradient above 0, groups without variance below .6 (bad above .95)",
        f"{SOURCE}, 2.1 (peer means are 0 by construction, so spreads are judged)",
        "reward.peer:0",
        gradients,
    ),
    Question(
        "Q6",
        "Does anything get better?",
        "right answers of the last third above those of the first, 95%; a policy gradient's loss need not fall",
        f"{SOURCE}, 2.2",
        "correct.last:0",
        loss_and_progress,
    ),
    Question(
        "Q7",
        "Does the policy change?",
        "updates above 0, KL above 1e-6, outputs on the same problem further apart late than early",
        f"{SOURCE}, 2.2",
        "",
        updating,
    ),
    Question(
        "Q8",
        "Is what is gained also gained on held-out problems?",
        "held-out gain at least a quarter of the training gain; bad where the detector held_out fires",
        f"{SOURCE}, 2.2; the quarter is ours",
        "correct:1",
        overfitting,
    ),
)
"""In the seed's order."""
