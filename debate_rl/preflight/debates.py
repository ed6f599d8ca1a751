"""Hold a few debates as in training, and check answers, votes, texts, advantages and the sampler."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch

from debate.concurrency import run_async
from debate.prompting.shown import speakers
from debate.types import WITHOUT_TRUTH, Debate, Policy
from debate_rl.alarms.rules import MISMATCH
from debate_rl.config import Config
from debate_rl.engines import end_engines, freeze_start, local_settings, make_policy, open_policy
from debate_rl.evaluation.grading import opened_verifying
from debate_rl.formatting import counted, duration
from debate_rl.inference.local import LocalPolicy
from debate_rl.metrics.debates import debate_metrics, due_pairs_of, form_failures
from debate_rl.metrics.intervals import Estimate, clustered_mean
from debate_rl.metrics.progress import parts_shown
from debate_rl.preflight.check import Check, above, of_estimate
from debate_rl.preflight.votes import RoundVotes, forecast_checks, labelled, votes_by_round
from debate_rl.rollouts.worker import Clock, Rollout, RolloutWorker
from debate_rl.runs.checkpoint import load_checkpoint
from debate_rl.runs.weights import newest_weights, start_of
from debate_rl.sampling.draw_problems import Draw
from debate_rl.sampling.load_problems import Problems
from debate_rl.warm_start.training import warm_start
from envs.answers.keys import key_of
from envs.causes.rules import is_incoherent
from learner.advantages import TurnAdvantage, turn_advantages
from learner.rows import make_rows
from learner.types import Row, Transition
from learner.update.batches import collate
from learner.update.forward import action_logprobs, compute_type
from rewards.judge_rewards import decidable_votes
from rewards.truth import is_right

ACCURACY, FAIR_ACCURACY = 0.05, 0.10
VALID, ANY_RIGHT = 0.8, 0.2
TRUNCATED, MANY_TRUNCATED = 0.1, 0.5
GARBAGE, DISTINCT = 0.2, 0.1
COVERED = 0.1
CHUNKS = 5
ROWS = 16
MINUTE = 60.0


class Opened(NamedTuple):
    """The policy, and the model to be trained, which is None if only a server has it."""

    policy: Policy
    model: Any


@contextmanager
def opened_policy(
    config: Config, data: Problems, run: Path | None, tell: Callable[[str], None]
) -> Iterator[Opened]:
    """Open the policy with the weights that training would start with, or with a run's newest weights.

    The warm start of the recipe runs in memory and is not saved. ``tell`` receives its progress.
    """
    with ExitStack() as stack:
        if config.model.policy == "openai":
            policy = open_policy(config, None)
            stack.callback(end_engines, policy)
            yield Opened(policy, None)
            return
        model, tokenizer, policy = make_policy(config)
        stack.callback(end_engines, policy)
        started = config.warm_start
        if run is not None and "frozen" in config.debate.seats:
            freeze_start(config, run, model, policy)
        path = newest_weights(run) if run is not None else None
        if path is None and started.from_run is not None:
            path = start_of(started.from_run)
        if path is not None:
            load_checkpoint(path, model=model, restore_rng=False, verify=False)
        elif started.steps:
            speaker = LocalPolicy(model, tokenizer, **local_settings(config))
            tell(f"starting with a warm start of {started.steps} steps in memory, as in training")
            with parts_shown() as parts:
                loss = warm_start(
                    *(model, tokenizer, config, data.environment),
                    encode=speaker.encode,
                    advance=parts.advance,
                )
            tell(f"warm start: loss {loss:.3f}")
        run_async(policy.update(model, policy.version))
        yield Opened(policy, model)


@dataclass(frozen=True, slots=True)
class Examined:
    """Debates with their rewards and the advantages of their turns."""

    config: Config
    data: Problems
    rollout: Rollout
    transitions: Sequence[Transition]
    advantages: Sequence[TurnAdvantage | None]


def chosen_problems(config: Config, data: Problems, count: int) -> list[int]:
    """Return the indices of ``count`` random training problems, starting with problems with truth."""
    order = list(range(len(data.train)))
    Random(config.seed).shuffle(order)
    order.sort(key=lambda index: data.train[index].kind in WITHOUT_TRUTH)
    return order[:count]


def size_line(config: Config, problems: int) -> str:
    """Return a line on the number of replies that will be sampled."""
    debate, each = config.debate, config.train.chunk
    turns = sum(len(speakers(debate, round_)) for round_ in range(debate.num_rounds + debate.final_ballot))
    replies = problems * each * turns
    return (
        f"{counted(problems, 'problem')} x {counted(each, 'debate')}: {counted(replies, 'reply')} of at most "
        f"{debate.max_tokens + debate.thinking_tokens} tokens"
    ).replace("replys", "replies")


def hold(config: Config, data: Problems, opened: Opened, count: int, say: Callable[[str], None]) -> Examined:
    """Hold debates on ``count`` problems. After a fifth of the problems, print the remaining time."""
    now = config.at_step(0)
    whole = {"group_size": config.train.chunk, "dynamic_sampling": 0, "adaptive": None}
    now = now.model_copy(update={"train": now.train.model_copy(update=whole)})
    indices = chosen_problems(config, data, count)
    rollout, started = Rollout([], [], [], []), time.monotonic()
    with opened_verifying(now, checked=True) as verifying:
        worker = RolloutWorker(now, data, opened.policy, verifying=verifying)
        size = -(-len(indices) // CHUNKS)
        for number, start in enumerate(range(0, len(indices), size)):
            part = Draw(tuple(indices[start : start + size]))
            rollout.add(worker.roll_out(number, lambda _, part=part: part, {}, Clock()))
            if number == 0 and size < len(indices):
                left = (time.monotonic() - started) * (len(indices) - size) / size
                say(f"the first {counted(size, 'problem')} done; about {duration(left)} left")
    transitions = rollout.transitions()
    advantages = turn_advantages(transitions, now.rewards, now.advantages, {})
    return Examined(now, data, rollout, transitions, advantages.turns)


def debate_checks(examined: Examined, opened: Opened) -> Iterator[Check]:
    """Yield all checks of the debates."""
    yield from _answer_gates(examined)
    yield from _vote_gates(examined)
    rollout = examined.rollout
    rounds = votes_by_round(rollout.debates, rollout.correct, key_of(examined.data.environment))
    for one in rounds:
        yield from _round_checks(one)
    yield from forecast_checks(labelled(rollout.debates, rollout.correct), rounds, examined.config.rewards)
    yield from _text_checks(examined)
    yield from coverage_checks(examined.advantages, examined.config)
    yield mismatch_check(examined, opened.model)


def _rate(rows: Sequence[tuple[str, bool]]) -> Estimate:
    """Return the fraction of true rows (problem, value), clustered by problem."""
    return clustered_mean([float(holds) for _, holds in rows], [problem for problem, _ in rows])


def _answer_gates(examined: Examined) -> Iterator[Check]:
    """Yield the fractions of right answers, and of debates with a right answer, in round 0."""
    tables = zip(examined.rollout.debates, examined.rollout.correct, strict=True)
    grades = [
        (debate.problem.id, [is_right(turn.id, table) for turn in debate.turns if turn.id.round == 0])
        for debate, table in tables
        if table is not None
    ]
    rows = [(problem, one) for problem, row in grades for one in row if one is not None]
    if not rows:
        for name in ("base accuracy", "some agent right"):
            yield Check(name, "not measured", None, "there are no gold answers, so solutions have no grades")
        return
    base = _rate(rows)
    why = f"of {base.n} solutions in round 0 are right; minimum {ACCURACY:g}, better {FAIR_ACCURACY:g}"
    easier = "env.levels (easier ones)"
    yield of_estimate("base accuracy", above(base.value, ACCURACY, FAIR_ACCURACY), base, why, easier)
    some = _rate([(problem, any(row)) for problem, row in grades if any(one is not None for one in row)])
    why = f"of debates have a right solution in round 0; minimum {ANY_RIGHT:g}"
    yield of_estimate("some agent right", above(some.value, ANY_RIGHT), some, why, easier)


def _vote_gates(examined: Examined) -> Iterator[Check]:
    """Yield the fraction of valid comparisons, and the judge's accuracy against chance."""
    debates, correct = examined.rollout.debates, examined.rollout.correct
    named = [(debate.problem.id, due_pairs_of(debate)) for debate in debates]
    form, cure = form_advice(debates, examined.config)
    if not any(own for _, own in named):
        why = "no agent compares solutions" if examined.rollout.rewards else "no debate was held"
        why = f"{why}: there are no votes to check"
        yield Check("valid comparisons", "warn" if form else "not measured", None, why + form, cure)
        yield Check("judge", "not measured", None, why)
        return
    valid = _rate([(problem, pair.verdict is not None) for problem, own in named for pair in own])
    why = f"of {valid.n} pairs have a valid vote; minimum {VALID:g}{form}"
    verdict = above(valid.value, VALID)
    verdict = "warn" if form and verdict == "ok" else verdict
    yield of_estimate("valid comparisons", verdict, valid, why, cure or "debate.prompts=small")
    votes = [
        (problem, right)
        for (problem, own), table in zip(named, correct, strict=True)
        if table is not None
        for right in decidable_votes(own, table)
        if right is not None
    ]
    if not votes:
        yield Check("judge", "not measured", None, "no vote is on a decidable pair")
        return
    judge = _rate(votes)
    high, low = (judge.high, judge.low) if judge.clusters > 1 else (1.0, 0.0)
    verdict = "ok" if low > 0.5 else "bad" if high < 0.5 or judge.value <= 0.5 else "warn"
    why = f"of {judge.n} votes on decidable pairs are right; chance is .5"
    yield of_estimate("judge", verdict, judge, why, "rewards.truth_weight=1.0")


def form_advice(debates: Sequence[Debate], config: Config) -> tuple[str, str]:
    """Return the main kind of failure of form and its remedy, or two "" if enough turns are valid."""
    kinds = [kind for debate in debates for kind in form_failures(debate)]
    if not kinds or kinds.count("") / len(kinds) >= VALID:
        return "", ""
    failures = Counter(kind for kind in kinds if kind)
    [(main, count)] = failures.most_common(1)
    debate, supervise = config.debate, "first train the form on debates, as debate train smollm2/form does"
    room = debate.context_tokens and f" debate.context_tokens={debate.context_tokens + debate.max_tokens}"
    lenient = "grader.mode=lenient, or " if config.grader.mode_at(0) == "boxed" else ""
    remedies = {
        "cut": f"debate.max_tokens={2 * debate.max_tokens}{room or ''}, or use shorter prompts",
        "no_answer": f"{lenient}answer_checked (the line that asks for the answer) in debate.prompts",
    }
    usual = supervise if debate.prompts == "small" else f"debate.prompts=small, or {supervise}"
    rate, share = (f"{number / len(kinds):.0%}" for number in (failures.total(), count))
    return f"; {rate} of turns lack valid form, most often {main} ({share})", remedies.get(main, usual)


def _round_checks(of: RoundVotes) -> Iterator[Check]:
    """Yield p_v, p_c, their difference, p_m and the shared errors of a round's votes."""
    number, votes, crowd, apart = of.round, of.votes, of.crowd, of.difference
    yield of_estimate(f"votes right, round {number}", "ok", votes, f"p_v, of {votes.n} votes")
    yield of_estimate(f"commoner answer right, round {number}", "ok", crowd, "p_c, on the same pairs")
    known = apart.clusters > 1
    worse, better = known and apart.high < 0, known and apart.low > 0
    words = "are worse than" if worse else "are better than" if better else "do not clearly differ from"
    why = f"p_v - p_c; votes {words} the more frequent answer"
    verdict = "warn" if worse else "ok"
    yield of_estimate(f"votes over crowd, round {number}", verdict, apart, why, "rewards.truth_weight=1.0")
    why = f"p_m, of {of.majority.n} graded problems; ties count in proportion"
    yield of_estimate(f"majority right, round {number}", "ok", of.majority, why)
    why = "intraclass correlation of wrong votes by problem: 0 if judges err independently, 1 if together"
    name = f"shared errors, round {number}"
    if of.shared is None:
        yield Check(
            name, "not measured", None, "needs right and wrong votes of two judges on the same problem"
        )
    else:
        yield of_estimate(name, "ok", of.shared, why)


def _text_checks(examined: Examined) -> Iterator[Check]:
    """Yield the fractions of truncated and empty replies, and the diversity of a problem's samples."""
    rollout, config = examined.rollout, examined.config
    figures = debate_metrics(
        rollout.debates, rollout.correct, rollout.rewards, evaluation=config.advantages.evaluation
    )
    cut = figures.get("truncated", 0.0)
    verdict = "bad" if cut > MANY_TRUNCATED else "warn" if cut > TRUNCATED else "ok"
    yield Check("truncated", verdict, cut, "of replies reach their token limit", "debate.max_tokens (higher)")
    replies = [turn.completion.text for debate in rollout.debates for turn in debate.turns]
    empty = sum(is_incoherent(text) for text in replies) / max(len(replies), 1)
    why = "of replies are repetitive or not text; check debate inspect prompts and the chat template"
    yield Check("garbage", "bad" if empty > GARBAGE else "ok", empty, why, "model.chat (the other value)")
    distinct = figures.get("completions/distinct")
    if distinct is not None:
        why = "of the replies to a problem are distinct; a low value means a fixed seed or a low temperature"
        yield Check("distinct", "bad" if distinct <= DISTINCT else "ok", distinct, why, "debate.temperature")


def coverage_checks(advantages: Sequence[TurnAdvantage | None], config: Config) -> Iterator[Check]:
    """Yield the fraction of turns with a nonzero advantage, for each stream and in total."""
    every = len(advantages)
    if not every:
        return
    parts = [one for one in advantages if one is not None]
    credit = ("generator",) if config.rewards.mix == "rewards" else ("truth", "peer")
    critics = ("critic",) if config.debate.protocol == "critique" else ()
    peer, truth = config.rewards.stream_weights
    unused = {"truth": not truth, "peer": not peer}
    for stream in (*credit, "judge", *critics, "format"):
        share = sum(bool(getattr(one, stream)) for one in parts) / every
        silent = not share and stream in ("truth", "generator") and not unused.get(stream)
        why = "of turns have a nonzero advantage" + ("; all rewards are equal" if silent else "")
        verdict = "not used" if unused.get(stream) else "warn" if silent else "ok"
        yield Check(f"advantages, {stream}", verdict, share, why, "env.levels (others)")
    some = sum(bool(one.generator or one.judge or one.critic or one.format) for one in parts) / every
    verdict = "bad" if not some else "warn" if some < COVERED else "ok"
    remedy = "train.group_size (more)"
    yield Check("advantages", verdict, some, "of turns have a nonzero advantage in any stream", remedy)


def mismatch_check(examined: Examined, model: Any) -> Check:
    """Check ``mismatch_kl``, the difference between learner and sampler as in metrics.jsonl."""
    name = "sampler and trainer"
    if model is None:
        return Check(name, "not measured", None, "a server samples, and no model is trained here")
    try:
        every = [TurnAdvantage(None, None, None)] * len(examined.transitions)
        rows = make_rows(examined.transitions, every, examined.config.advantages)[:ROWS]
    except ValueError as error:
        return Check(name, "not measured", None, str(error)[:200])
    if not rows:
        return Check(name, "not measured", None, "there are no turns")
    kl = mismatch_kl(model, rows, examined.config)
    why = f"KL of {counted(len(rows), 'turn')}; rounding explains at most {MISMATCH:g}"
    products = compute_type(model, examined.config.learner.compute)
    remedy = "model.dtype=float32" if products is None else "learner.compute=float32"
    return Check(name, "bad" if not kl <= MISMATCH else "ok", kl, why, remedy)


@torch.no_grad()
def mismatch_kl(model: Any, rows: Sequence[Row], config: Config) -> float:
    """Return the mean over sampled tokens of exp(d) - 1 - d, d = log-probability of trainer - sampler."""
    device, compute = next(model.parameters()).device, compute_type(model, config.learner.compute)
    total, count = 0.0, 0
    model.eval()
    for row in rows:
        batch = collate([row], device=device)
        apart = action_logprobs(model, batch, compute=compute)[0] - batch.sampling_logprobs
        total += float(torch.where(batch.mask, apart.expm1() - apart, 0.0).sum())
        count += int(batch.mask.sum())
    return total / max(count, 1)
