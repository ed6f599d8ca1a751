"""Metrics of a batch of debates: rewards by stream, votes by kind, judging, format, lengths.

The names of metrics never depend on the data, except for the k of pass@k. A mean over no values is left out,
because it is not zero. Counts are always present.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean
from types import MappingProxyType

from msgspec import UNSET

from debate.config import DebateConfig
from debate.parsing.tags import is_well_formed
from debate.policy import token_counts
from debate.types import WITHOUT_TRUTH, Debate, FailureReason, Turn
from debate_rl.metrics.answers import answer_metrics, mean_of, score_metrics, source_metrics, winner_metrics
from debate_rl.metrics.features import (
    criticism_metrics,
    likelihood_metrics,
    seat_metrics,
    tool_metrics,
    verdict_metrics,
)
from envs import GradeStatus
from envs.answers.keys import AnswerKey, plain_key
from envs.types import MODES
from learner.advantages import Author
from learner.token_streams import CRITIC, GENERATOR, JUDGE, token_streams
from rewards import STREAMS, Correct, Rewards, ballot_box, valid_votes
from rewards.judge_rewards import JudgeCounts, consistencies, judge_counts
from rewards.score import penalized_turns
from rewards.truth import of_truth_alone
from rewards.types import OPTIONAL_STREAMS, Likelihoods, Verdicts, known_values, stream_named
from rewards.votes import DuePair, drop_reasons, due_pairs

FORM_FAILURES = (
    *("cut", "no_solution", "no_evaluation", "unknown_label", "no_comparison", "other"),
    "no_answer",  # last: only the answer is missing
)
"""The kinds of turns without valid form (docs/metrics_learning.md). A turn has the first that applies."""
_INCOMPLETE = {FailureReason.MISSING_SECTION, FailureReason.UNCLOSED_SECTION, FailureReason.UNTAGGED}
_STRANGE = {FailureReason.UNKNOWN_HANDLE, FailureReason.OWN_WORK}


def debate_metrics(
    debates: Sequence[Debate],
    correct: Sequence[Correct],
    rewards: Sequence[Rewards],
    *,
    evaluation: Author,
    grader: Mapping[str, int] | None = None,
    key: AnswerKey = plain_key,
    sources: Mapping[str, str] = MappingProxyType({}),
    verdicts: Sequence[Verdicts | None] | None = None,
    verified: Mapping[str, int] | None = None,
    likelihoods: Sequence[Likelihoods] = (),
) -> dict[str, float]:
    """Return the metrics of a batch: entry i of each sequence is about debate i.

    ``correct[i][agent][round]`` is as for score_debate, ``evaluation`` as for token_streams, ``key`` as for
    answer_metrics, and ``sources`` as for source_metrics. ``grader`` is the tally of
    debate_rl.evaluation.grading.grade_debate. The ``verdicts`` of a verifier model are not truth: the figures
    of the truth stream leave out rewards that come from verdicts.
    """
    said = verdicts or [None] * len(debates)
    true = [of_truth_alone(*one) for one in zip(rewards, correct, said, strict=True)]
    return (
        reward_metrics(true)
        | counter_metrics(debates, rewards)
        | judge_metrics(debates, correct)
        | swap_metrics(debates)
        | answer_metrics(debates, correct, key=key)
        | winner_metrics(debates, correct, rewards)
        | criticism_metrics(debates, correct)
        | seat_metrics(debates, correct)
        | tool_metrics(debates, correct)
        | format_metrics(debates)
        | length_metrics(debates, evaluation=evaluation)
        | grader_metrics(grader or {})
        | score_metrics(debates, correct)
        | source_metrics(debates, correct, true, sources)
        | verdict_metrics(debates, correct, rewards, said, verified or {})
        | likelihood_metrics(debates, correct, likelihoods)
    )


def grader_metrics(tally: Mapping[str, int]) -> dict[str, float]:
    """Return the counts of ungraded answers, the fraction that math-verify decided, and the grader's seconds.

    For each other grading mode, also return the fraction of right answers and of missing answers.

    >>> grader_metrics({"correct": 3, "timeout": 1, "symbolic": 2, "microseconds": 8000})
    {'grader/timeout': 1.0, 'grader/crash': 0.0, 'grader/symbolic_share': 0.5, 'seconds/grade': 0.008}
    """
    graded = sum(tally.get(status, 0) for status in GradeStatus)
    result = {f"grader/{status}": float(tally.get(status, 0)) for status in ("timeout", "crash")}
    if graded:
        result["grader/symbolic_share"] = tally.get("symbolic", 0) / graded
        result["seconds/grade"] = tally.get("microseconds", 0) / 1e6
    for mode in MODES:
        if count := tally.get(f"graded [{mode}]", 0):
            result[f"accuracy [{mode}]"] = tally.get(f"right [{mode}]", 0) / count
            result[f"missing [{mode}]"] = tally.get(f"missing [{mode}]", 0) / count
    return result


def reward_metrics(rewards: Sequence[Rewards]) -> dict[str, float]:
    """Return the mean, population standard deviation and n of each stream over the turns with a value."""
    result: dict[str, float] = {}
    further = [
        name for name in OPTIONAL_STREAMS if any(getattr(reward, name) is not UNSET for reward in rewards)
    ]
    for name in (*STREAMS, *further):
        values = [v for reward in rewards for v in known_values(stream_named(reward, name))]
        result |= mean_of(f"reward/{name}/mean", values) | {f"reward/{name}/n": float(len(values))}
        if values:
            mean = fmean(values)
            result[f"reward/{name}/std"] = sqrt(fmean((v - mean) ** 2 for v in values))
    return result


def counter_metrics(debates: Sequence[Debate], rewards: Sequence[Rewards]) -> dict[str, float]:
    """Return every counter summed over the batch, the number of votes that were not due, and two fractions.

    Of the turns that owe votes, ``judge/parsed_share`` have at least one valid vote, and
    ``judge/signal_share`` have a judge reward.
    """
    total: Counter[str] = Counter()
    for reward in rewards:
        total.update(dict(reward.counters))
    failures = (f.reason for debate in debates for turn in debate.turns for f in turn.parsed.failures)
    total["votes/not_due"] += sum(reason is FailureReason.NOT_DUE for reason in failures)
    result = {name: float(count) for name, count in sorted(total.items())}
    if due := total["judge/due"]:
        result["judge/parsed_share"] = 1.0 - total["format/penalties"] / due
        result["judge/signal_share"] = total["judge/signal"] / due
    return result


def judge_metrics(debates: Sequence[Debate], correct: Sequence[Correct]) -> dict[str, float]:
    """Return how well the judges compared decidable pairs: both sides are graded and exactly one is right.

    ``judge/decidable_votes`` counts the valid votes on decidable pairs. ``judge/decidable_pairs`` counts the
    decidable pairs that judges could have compared. accuracy = right / votes, strict_accuracy = right /
    pairs, coverage = votes / pairs. A tie is not right.
    """
    counts = JudgeCounts()
    for debate, table in zip(debates, correct, strict=True):
        if table is not None:
            counts = counts.plus(judge_counts(due_pairs_of(debate), table))
    result = {"judge/decidable_votes": float(counts.votes), "judge/decidable_pairs": float(counts.due)}
    shares = {
        "judge/accuracy": counts.accuracy,
        "judge/strict_accuracy": counts.strict_accuracy,
        "judge/coverage": counts.coverage,
    }
    return result | {name: share for name, share in shares.items() if share is not None}


def due_pairs_of(debate: Debate) -> list[DuePair]:
    """Return the pairs that the judges of a debate could compare, each with its valid votes."""
    box = ballot_box(debate)
    return due_pairs(box, valid_votes(box))


def format_metrics(debates: Sequence[Debate]) -> dict[str, float]:
    """Return the fractions of turns that are valid, well-formed XML, malformed, cut off or unanswered.

    ``format/valid`` and the shares of the kinds of failure sum to 1.
    """
    turns = [turn for debate in debates for turn in debate.turns]
    solved = [turn for turn in turns if not turn.ballot]
    kinds = [kind for debate in debates for kind in form_failures(debate)]
    result = mean_of("format/valid", (not kind for kind in kinds))
    for name in FORM_FAILURES:
        result |= mean_of(f"format/{name}", (kind == name for kind in kinds))
    result |= mean_of("format/well_formed", (is_well_formed(turn.completion.stated) for turn in turns))
    for reason in FailureReason:
        has = (any(f.reason is reason for f in turn.parsed.failures) for turn in turns)
        result |= mean_of(f"malformed/{reason}", has)
    result |= mean_of("missing", (turn.parsed.answer is None for turn in solved))
    result |= mean_of("truncated", (turn.completion.stop_reason == "length" for turn in turns))
    return result


def form_failures(debate: Debate) -> list[str]:
    """Return for each turn the first of ``FORM_FAILURES`` that applies, or "" if the turn is valid."""
    box = ballot_box(debate)
    cast = [*zip(box.votes, drop_reasons(box), strict=True)]
    unvoted = penalized_turns(box, [vote for vote, reason in cast if not reason])
    strange = {vote.judge for vote, reason in cast if reason in ("own_work", "not_shown")} & unvoted
    asked = debate.problem.kind not in WITHOUT_TRUTH
    return [
        _form_failure(turn, unvoted=turn.id in unvoted, strange=turn.id in strange, asked=asked)
        for turn in debate.turns
    ]


def _form_failure(turn: Turn, *, unvoted: bool, strange: bool, asked: bool) -> str:
    parsed, solves = turn.parsed, not turn.ballot
    reasons = {failure.reason for failure in parsed.failures}
    lacks = {failure.detail for failure in parsed.failures if failure.reason in _INCOMPLETE}
    if solves and parsed.solution is None:
        lacks.add("solution")
    applies = {
        "cut": bool(lacks) and turn.completion.stop_reason == "length",
        "no_solution": "solution" in lacks,
        "no_evaluation": "evaluation" in lacks,
        "unknown_label": strange or not reasons.isdisjoint(_STRANGE),
        "no_comparison": unvoted or "comparison" in lacks,
        "other": bool(reasons),
        "no_answer": asked and solves and parsed.answer is None,
    }
    return next((kind for kind in FORM_FAILURES if applies[kind]), "")


def length_metrics(debates: Sequence[Debate], *, evaluation: Author) -> dict[str, float]:
    """Return tokens per turn (prompt, completion, streams), cut texts in prompts, and distinct first replies.

    Forced tokens and program outputs count as completion tokens but belong to no stream. A token of two
    streams counts in both. ``completions/distinct`` is the number of different replies to a problem in round
    0 divided by the number of replies. It is 1 / (K N) if all replies are equal, as with a fixed seed.
    """
    turns = [turn for debate in debates for turn in debate.turns]
    sizes = [len(turn.completion.tokens) for turn in turns]
    counted = [turn for turn in turns if len(turn.completion.offsets) == len(turn.completion.tokens)]
    streams = [token_streams(turn, evaluation=evaluation) for turn in counted]
    critics = any(turn.parsed.criticisms is not UNSET for turn in turns)
    openings: dict[str, list[str]] = {}
    for debate in debates:
        opening = [turn.completion.text for turn in debate.turns if turn.id.round == 0]
        openings.setdefault(debate.problem.id, []).extend(opening)
    distinct = (len(set(group)) / len(group) for group in openings.values() if group)
    return (
        mean_of("tokens/completion", sizes)
        | {"tokens/completion_max": float(max(sizes, default=0)), "tokens/generated": float(sum(sizes))}
        | mean_of("tokens/prompt", (len(turn.completion.prompt_tokens) for turn in turns))
        | mean_of("tokens/generator", (int((stream & GENERATOR > 0).sum()) for stream in streams))
        | mean_of("tokens/judge", (int((stream & JUDGE > 0).sum()) for stream in streams))
        | (mean_of("tokens/critic", (int((stream == CRITIC).sum()) for stream in streams)) if critics else {})
        | {"prompt/cut": float(sum(turn.cut for turn in turns))}
        | mean_of("completions/distinct", distinct)
    )


def swap_metrics(debates: Sequence[Debate]) -> dict[str, float]:
    """Return the mean consistency and the tokens of swapped ballots, or {} if no ballot was swapped."""
    again = [one for debate in debates for one in debate.swapped or ()]
    if not again:
        return {}
    tokens = sum(token_counts(one.completion)[1] for one in again)
    found = (value for debate in debates for value in consistencies(debate, judge_own=True).values())
    return mean_of("judge/swap", found) | {"tokens/swapped": float(tokens)}


def compression_metrics(debates: Sequence[Debate], config: DebateConfig) -> dict[str, float]:
    """Return the numbers of compressed solutions, of solutions cut for lack of a summary, and of tokens."""
    if config.compress.over is None:
        return {}
    made = [one for debate in debates for one in debate.compressions or ()]
    return {
        "compressions": float(len(made)),
        "compressions/failed": float(sum(one.failed for one in made)),
        "compressions/tokens": float(sum(token_counts(r)[1] for one in made for r in one.completions)),
    }


def size_metrics(debates: Sequence[Debate], config: DebateConfig) -> dict[str, float]:
    """Return the mean number of agents and rounds, if these differ by level.

    If debates may stop early, also return the fraction that did. The final ballot is not a round.
    """
    stops, sizes = config.min_rounds is not None, [debate.protocol for debate in debates]
    result = mean_of("agents", (size.num_agents for size in sizes)) if config.by_level else {}
    if config.by_level or stops:
        result |= mean_of("rounds", (size.num_rounds for size in sizes))
    if stops:
        result |= mean_of("stopped", (debate.rounds_saved is not UNSET for debate in debates))
    return result
