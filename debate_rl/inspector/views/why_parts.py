"""The parts of "Why this reward?": votes received, grade, votes given, format, streams, and what tokens get.

A part is a table of facts by name, as its JSON has them; rows of votes are such tables too. Every ``Number``
is what rewards and advantages gave, and its formula only says how it came out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from debate.ramps import number
from debate.types import Debate, Problem, TurnId, Vote
from debate_rl.inspector.views.debate import verdict_text
from debate_rl.inspector.views.why_step import Number, Numbers, Step, added, written
from envs.errors import MissingPackageError
from envs.instructions import ConstraintError, constraints_of, follows
from envs.registry import key_by_itself
from learner.advantages import StreamSettings
from learner.advantages.streams import BATCH_STD_FLOOR, GROUP_STD_EPS, GroupParts
from learner.advantages.turns import BESIDE, CREDIT, StreamName, StreamOf, generator_streams, mixed, scaled
from rewards import RewardConfig, ballot_box, drop_reasons, valid_votes
from rewards.consistency import consistencies
from rewards.criticism import criticised, persuasions
from rewards.graph import Results, results_by_opponent, total
from rewards.judging import VoteValue, values_of_votes
from rewards.peer import fitted_together, preference
from rewards.shaping import shaping_of
from rewards.truth import TRUTH_SETTINGS, counts_partly, grade_of, score_of, truth_turns
from rewards.types import Correct, value_of
from rewards.votes import BallotBox, sign
from transcripts.record import PARTS

Facts: TypeAlias = dict[str, Any]
"""Facts by name: texts, numbers, turns, grades, a ``Number``, or rows, which are facts as well."""
NO_LABEL = "no label"
PEER_SOURCES: Final = {
    "": "",
    "margin": "(won - lost) / (won + lost + ties)",
    "copeland": "mean over opponents of the sign of won less lost",
    "win_rate": "(won + ties / 2) / (won + lost + ties)",
    "net_wins": "won - lost",
    "bradley_terry": "log-strengths of a connected part are centred: less the sum of the others'",
}


class Votes:
    """The votes of a debate, each with why it does not count, and the valid ones.

    Where the scheme is not known, own work counts if it was asked for.
    """

    def __init__(self, numbers: Numbers) -> None:
        self.debate, scheme = numbers.record.debate, numbers.scheme
        self.box: BallotBox = ballot_box(self.debate, judge_own=scheme is None or scheme.judge_own)
        self.cast = tuple(zip(self.debate.votes, drop_reasons(self.box), strict=True))
        self.counted = tuple(vote for vote, reason in self.cast if not reason)

    def facts(self, vote: Vote, reason: str) -> Facts:
        """Return the judge's words, and whether and why a vote does not count."""
        said = self.debate.turn(vote.judge).completion.text
        return {"line": vote.span.of(said) if vote.span else "", "counts": not reason, "why_not": reason}


def peer_why(numbers: Numbers, votes: Votes) -> Facts:
    """Return the votes on a turn, what they come to against each opponent, and the peer reward."""
    rule = "" if numbers.scheme is None else numbers.scheme.peer
    row = results_by_opponent(votes.counted).get(numbers.turn, {})
    opponents = list(_opponents(numbers, votes, row, rule))
    won, lost, ties = total(row)
    formulas = {
        "margin": f"({won} - {lost}) / ({won} + {lost} + {ties})",
        "win_rate": f"({won} + {ties} / 2) / ({won} + {lost} + {ties})",
        "net_wins": f"{won} - {lost}",
        "copeland": f"({added([other['sign'] for other in opponents])}) / {len(opponents)}",
        "bradley_terry": f"-({added([other['score'] or 0.0 for other in opponents])})",
    }
    source = (
        PEER_SOURCES.get(rule, f"{rule} gives the value itself") if row else "no valid vote names this turn"
    )
    return {
        "rule": rule,
        "votes": list(_naming(votes, numbers.turn)),
        **{"won": won, "lost": lost, "ties": ties},
        "opponents": opponents,
        "reward": numbers.reward("peer", source, formulas.get(rule, "") if row else ""),
    }


def _naming(votes: Votes, turn: TurnId) -> Iterator[Facts]:
    for vote, reason in votes.cast:
        if turn in (vote.left, vote.right):
            preferred = (vote.outcome == "left") == (vote.left == turn)
            yield {
                "judge": vote.judge,
                "persona": votes.debate.personas[vote.judge.agent].name,
                "other": vote.right if vote.left == turn else vote.left,
                "result": "tie" if vote.outcome == "tie" else "won" if preferred else "lost",
                **votes.facts(vote, reason),
            }


def _opponents(numbers: Numbers, votes: Votes, row: Mapping[TurnId, Results], rule: str) -> Iterator[Facts]:
    """Yield the turns that the rule set a turn against; Bradley-Terry fits all of a connected part."""
    together = fitted_together(votes.counted) if rule == "bradley_terry" and row else ()
    scores = numbers.scores("peer")
    own = value_of(scores, numbers.turn)
    for other in next((part for part in together if numbers.turn in part), sorted(row)):
        if other != numbers.turn:
            (won, lost, ties), score = row.get(other, Results()), value_of(scores, other)
            beats = preference(own or 0.0, score or 0.0) if together else None
            results = {"won": won, "lost": lost, "ties": ties, "sign": sign(won - lost)}
            yield {"turn": other, **results, "score": score, "beats": beats}


def truth_why(numbers: Numbers) -> Facts:
    """Return the grade of a turn, by what it was graded, and the truth reward."""
    record, credit, scheme = numbers.record, numbers.credit, numbers.scheme
    turn, problem = record.debate.turn(numbers.turn), record.debate.problem
    grade = grade_of(numbers.turn, credit.grades_of_truth(record.correct))
    setting, formula = TRUTH_SETTINGS[grade], ""
    source = f"rewards.{setting}" if setting else _why_no_truth(numbers)
    if setting and scheme is not None and numbers.turn not in truth_turns(ballot_box(record.debate), scheme):
        setting, source = "", 'not the last round, by rewards.truth_rounds = "last"'
    score = score_of(turn) if credit.truth == "truth" else None
    if scheme is not None and score is not None and counts_partly(grade, scheme, score):
        source = f'a score of {score:g}, by rewards.truth_credit = "partial"'
        formula = f"{scheme.truth_wrong:g} + {score:g} * ({scheme.truth_correct:g} - {scheme.truth_wrong:g})"
    verdict = verdict_text(record, numbers.turn)
    if record.correct is None and verdict:
        source = f"a {verdict}" if verdict.startswith("verdict") else verdict
    return {
        "answer": turn.parsed.answer,
        "gold": problem.answer,
        "grade": grade,
        "setting": setting,
        "reward": numbers.reward("truth", source, formula),
        "score": score,
        "parts": _followed(problem, turn.parsed.answer),
        "verdict": verdict,
        "by": _graded_by(numbers),
        "audit": grade_of(numbers.turn, record.correct),
    }


def _graded_by(numbers: Numbers) -> str:
    """Return what stood for the gold answer in the turn's grade; "" where nothing did."""
    credit, round_ = numbers.credit, numbers.turn.round
    if credit.truth in ("truth", "coin"):
        return "" if credit.truth == "truth" else "a coin"
    said = credit.labels[round_] if credit.truth != "none" and round_ < len(credit.labels) else None
    return NO_LABEL if said is None else f"the pseudo-label {said} ({credit.truth})"


def _why_no_truth(numbers: Numbers) -> str:
    if numbers.credit.truth == "none":
        return "the problem has no label: rewards.labels"
    if numbers.credit.truth != "truth":
        return f'no answer became the pseudo-label: rewards.pseudo = "{numbers.credit.truth}"'
    ungraded = "the answer was not graded, which is not wrong"
    return "the problem has no gold answer" if numbers.record.correct is None else ungraded


def _followed(problem: Problem, answer: str | None) -> list[tuple[str, bool]]:
    """Return each instruction of a problem and whether the answer follows it; nothing where none is known."""
    if problem.kind != "instructions" or problem.answer is None or answer is None:
        return []
    try:
        constraints = constraints_of(problem.answer)
        met = follows(answer, constraints)
    except (ConstraintError, MissingPackageError):  # of another environment, or without a detector here
        return []
    return [(constraint.id, one) for constraint, one in zip(constraints, met, strict=True)]


def judge_why(numbers: Numbers, votes: Votes) -> Facts:
    """Return the votes that a turn gave with their values, and the judge reward, their mean."""
    correct, scheme = numbers.credit.grades_of_judges(numbers.record.correct), numbers.scheme
    weight, worth = None, dict[int, VoteValue]()
    if scheme is not None:
        weight = scheme.judge_weight_of_truth(verifiable=correct is not None)
        values = values_of_votes(votes.counted, correct, scheme, numbers.record.verdicts or None)
        worth = dict(zip(map(id, votes.counted), values, strict=True))
    given: list[Facts] = []
    for vote, reason in votes.cast:
        if vote.judge == numbers.turn:
            found = worth.get(id(vote), VoteValue(None, None, None, None))
            value = Number(
                source=f"does not count: {reason}" if reason else "not known without a configuration"
            )
            if scheme is not None and weight is not None and not reason:
                value = _worth(found, number(scheme.judge_verdict_weight), weight)
            grades = grade_of(vote.left, correct), grade_of(vote.right, correct)
            given.append(
                {
                    **{"left": vote.left, "outcome": vote.outcome, "right": vote.right, "left_right": grades},
                    **{"truth": found.truth, "others": found.others, "consensus": found.consensus},
                    **{"verdict": found.verdict, "value": value},
                    **votes.facts(vote, reason),
                }
            )
    rewarded = [vote["value"].value for vote in given if vote["value"].value is not None]
    formula, source = "", "mean value of the votes that have one"
    if rewarded:
        formula = f"({added(rewarded)}) / {len(rewarded)}"
    elif not any(vote["counts"] for vote in given):
        source = "the turn gave no valid vote"
    elif weight is not None:
        source = "no vote has a value: see each vote"
    if scheme is not None and (swap := number(scheme.swap_weight)):
        twice = consistencies(votes.debate, judge_own=scheme.judge_own).get(numbers.turn)
        if twice is not None:
            formula = f"{formula or '0'} + {written(swap)} * {written(twice)}"
            source += ", and its consistency with a second ballot: rewards.swap_weight"
    return {"truth_weight": weight, "votes": given, "reward": numbers.reward("judge", source, formula)}


def _worth(worth: VoteValue, of_verdict: float, weight: float) -> Number:
    """Return what a valid vote is worth: truth, consensus and a verifier model's preference, weighted."""
    if worth.value is None:
        undecided = "not exactly one side is right"
        balanced = "the other judges of the pair balance, or there are none"
        both = f"{undecided}, and {balanced}"
        return Number(source=undecided if weight == 1 else balanced if weight == 0 else both)
    truth, consensus, said = map(written, (worth.truth, worth.consensus, worth.verdict))
    formula, source = truth or consensus, "truth" if truth else "the others' consensus"
    if truth and consensus:
        formula = f"{written(weight)} * {truth} + (1 - {written(weight)}) * {consensus}"
        source = "truth and the consensus of the others, weighted"
    if said and (of_verdict >= 1 or not formula):
        formula, source = said, "a verifier model's preference"
    elif said:
        formula = f"{written(of_verdict)} * {said} + (1 - {written(of_verdict)}) * ({formula})"
        source = f"a verifier model's preference beside {source}"
    return Number(float(worth.value), formula, source=source)


def format_why(numbers: Numbers, votes: Votes) -> Facts:
    """Return whether comparisons were due, how many votes are valid, what is malformed, and the penalty."""
    turn = numbers.record.debate.turn(numbers.turn)
    counted, due = sum(vote.judge == turn.id for vote in votes.counted), turn.id in votes.box.due()
    source = "comparisons were due and no vote is valid: rewards.format_penalty"
    if not due or counted:
        source = f"valid votes: {counted}, so no format penalty" if due else "no comparison was due"
    failures = [(failure.reason.value, failure.detail) for failure in turn.parsed.failures]
    facts = {"due": due, "comparable": turn.compared, "counted": counted, "failures": failures}
    return {**facts, "reward": numbers.reward("format", source)}


def streams_why(numbers: Numbers) -> Iterator[Facts]:
    """Yield how each stream's value becomes the turn's advantage; nothing where that is not known.

    ``members``: the turns with a value that matter for each other. ``centre`` is taken off the value, and
    ``spread`` is the standard deviation that divides; None where nothing does.
    """
    step = numbers.step
    if step is None:
        return
    critics: tuple[StreamName, ...] = ("persuasion",) if "persuasion" in step.advantages.streams else ()
    for name in (*generator_streams(step.scheme.rewards), "judge", *critics, "format"):
        settings: StreamSettings = getattr(step.scheme.advantages, name)
        stream = step.advantages.streams[name]
        group, value = stream.groups.get(stream.keys[step.index]), stream.values[step.index]
        compares = settings.baseline in ("group", "rloo") or settings.scale == "group"
        centre = spread = None
        if group is not None and value is not None:
            centre, spread = _centre(step, settings, stream, group), _spread(settings, stream, group)
        yield {
            "name": name,
            "baseline": settings.baseline,
            "scale": settings.scale,
            "key": "persona" if settings.baseline == "rae" else stream.key,
            "reward": _value(numbers, step, name),
            "members": list(_members(step, group)) if group is not None and compares else [],
            "centre": centre,
            "spread": spread,
            "advantage": _advantage(step, name, centre, spread),
        }


def _members(step: Step, group: GroupParts) -> Iterator[Facts]:
    for index, value in zip(group.members, group.values.tolist(), strict=True):
        other = step.scored.transitions[index]
        where = {"id": step.ids[other.debate], "turn": other.turn.id, "persona": other.persona.name}
        right = grade_of(other.turn.id, step.paid(other.debate)) is True
        yield {**where, "value": value, "right": right, "this": index == step.index}


def _value(numbers: Numbers, step: Step, name: StreamName) -> Number:
    """Return the reward of a stream, or what rewards are mixed to, as the sum of its parts."""
    debate, rewards, formula = numbers.record.debate, step.scheme.rewards, None
    source = f"the {name} reward"
    if name in CREDIT and (step.scheme.advantages.discount or name == "mixed"):
        return _returned(step, name)
    if name == "shaping" and (parts := shaping_of(debate, rewards, key_by_itself).get(numbers.turn)):
        revises = debate.protocol.protocol == "critique"
        formula = " + ".join(map(written, parts if revises else parts[:3]))
        source = "new, copied, and the length of the reply" + (", and a better revision" if revises else "")
    elif name == "likelihood":
        source = (
            "log-probability of a token of the gold answer behind the reasoning alone, less the baseline's"
        )
        read = numbers.record.likelihoods
        value = value_of(read.logprobs, numbers.turn) if read else None
        if read and value is not None:
            formula = written(value) + ("" if read.baseline is None else f" - {written(read.baseline)}")
    elif name == "persuasion":
        formula = _persuasion(debate, numbers.turn, step.paid(step.own.debate), rewards)
        source = "of each target its score by the others less that of its revision"
        if rewards.critic == "help":
            source = "of each target the score of its revision by the others less that of its solution"
        source += "; 0 for a right one" if rewards.persuasion_targets == "wrong" else ""
    return numbers.reward(name, source, formula)


def _persuasion(debate: Debate, turn: TurnId, correct: Correct, scheme: RewardConfig) -> str:
    """Return what a critic earns as the sum over its targets; "" where none has both scores."""
    beta, parts = written(number(scheme.persuasion_beta)), list[str]()
    for one in criticised(debate, valid_votes(ballot_box(debate, judge_own=scheme.judge_own))):
        earned = persuasions([one], correct, scheme).get(turn)
        if earned is not None:
            before, after = written(one.before), written(one.after)
            falls = f"{beta} * max(0, {before} - {after})"
            said = f"{beta} * ({after} - {before})" if scheme.critic == "help" else falls
            parts.append(said if earned or not one.worth(scheme.critic) else written(0.0))
    return " + ".join(parts)


def _returned(step: Step, name: StreamName) -> Number:
    """Return a mix of rewards, or the discounted sum of those of a turn's agent from its round on."""
    own, weights, value = step.own, step.advantages.weights, step.advantages.streams[name].values[step.index]
    if not step.scheme.advantages.discount:
        formula = _sum(zip(_weights(step).values(), (own.peer, own.truth), weights, strict=True))
        return Number(value, formula, source="peer and truth mixed before the baseline")
    discount, parts = written(step.scheme.advantages.discount), list[str]()
    for one in step.scored.transitions:
        rounds = one.turn.id.round - own.turn.id.round
        if (one.debate, one.turn.id.agent) == (own.debate, own.turn.id.agent) and rounds >= 0:
            raw = mixed(one.peer, one.truth, weights) if name == "mixed" else getattr(one, name)
            parts += [] if raw is None else [f"{discount} ** {rounds} * {written(raw)}"]
    source = "this round's reward, and those of the agent's later rounds discounted"
    return Number(value, " + ".join(parts), source=source)


def _sum(parts: Iterator[tuple[str, float | None, float]]) -> str:
    """Return the sum of parts, each with its weight as formulas have it, and as a number: 0 leaves it out."""
    there = [(weight, part) for weight, part, factor in parts if scaled(part, factor) is not None]
    return " + ".join(f"{weight} * {written(part)}" if weight else written(part) for weight, part in there)


def _weights(step: Step) -> dict[StreamName, str]:
    """Return the weights of peer and truth as formulas have them."""
    rewards = step.scheme.rewards
    if rewards.peer_weight == "routed":
        return {"peer": "1", "truth": "1"}
    if rewards.peer_weight == "measured":
        peer, truth = map(written, step.advantages.weights)
        return {"peer": peer, "truth": truth}
    weight = written(number(rewards.truth_weight))
    return {"peer": f"(1 - {weight})", "truth": weight}


def _centre(step: Step, settings: StreamSettings, stream: StreamOf, group: GroupParts) -> Number | None:
    """Return what is taken off the value, None where nothing is."""
    if group.centre is None:
        return None
    at, values = group.members.index(step.index), group.values.tolist()
    centre, others = float(group.centre[at]), values[:at] + values[at + 1 :]
    if settings.baseline == "rae":
        if not step.means_known:
            return Number(source=f"the persona's running mean is not shown: {step.means_source}")
        decay = step.scheme.advantages.ema_decay
        source = f"the persona's running mean before this step, decay {decay:g}; {step.means_source}"
        return Number(centre, written(centre), source=source)
    if group.effects is not None:
        context = "context: own last solution right or not, right ones shown"
        source = (
            f"mean of the group, and the effect of the {context if stream.key == 'context' else 'persona'}"
        )
        fit = f"({added(values)}) / {len(values)} + {written(float(group.effects.offset[at]))}"
        if settings.baseline == "rloo" and others:
            weight = f"(1 / {len(values)} + {written(float(group.effects.leverage[at]))})"
            fit = f"({fit} - {weight} * {written(values[at])}) / (1 - {weight})"
            source += "; the turn itself left out"
        return Number(centre, fit, source=source)
    if settings.baseline == "group":
        return Number(centre, f"({added(values)}) / {len(values)}", source="mean of the group")
    if not others:
        return Number(source="no others in the group")
    return Number(centre, f"({added(others)}) / {len(others)}", source="mean of the others in the group")


def _spread(settings: StreamSettings, stream: StreamOf, group: GroupParts) -> Number | None:
    """Return the standard deviation that divides, None where nothing does."""
    if settings.scale == "batch":
        count = sum(value is not None for value in stream.values)
        source = f"standard deviation of all {count} values of the step; divides, {BATCH_STD_FLOOR} at least"
        return Number(group.std, source=source)
    if settings.scale == "none":
        return None
    mean = written(group.mean)
    squares = " + ".join(f"({written(value)} - {mean}) ** 2" for value in group.values.tolist())
    source = f"standard deviation of the group; divides, {GROUP_STD_EPS:g} added"
    return Number(group.std, f"(({squares}) / {len(group.members)}) ** 0.5", source=source)


def _advantage(step: Step, name: StreamName, centre: Number | None, spread: Number | None) -> Number:
    """Return the stream's advantage, and its arithmetic with the centre and the spread put in."""
    settings: StreamSettings = getattr(step.scheme.advantages, name)
    stream = step.advantages.streams[name]
    value, advantage = stream.values[step.index], stream.advantages[step.index]
    if not step.knows(name):
        return Number(source="not computed: see the running mean")
    if value is None:
        return Number(source="no value, no signal")
    if advantage is None:
        count = len(stream.groups[stream.keys[step.index]].members)
        alone = "alone in its group" if count == 1 else f"all {count} values of its group are equal"
        return Number(source=f"no signal: {alone}")
    formula = written(value) if centre is None else f"({written(value)} - {written(centre.value)})"
    if spread is not None:
        std = written(spread.value)
        divisors = {"group": f"({std} + {GROUP_STD_EPS!r})", "batch": f"max({std}, {BATCH_STD_FLOOR!r})"}
        formula += f" / {divisors[settings.scale]}"
    side = step.advantages.sides[step.index]
    if stream.key == "pair" and side:
        formula = f"({sum(stream.sides.values())} / (2 * {stream.sides[side]})) * {formula}"
    return Number(advantage, formula, source=f"baseline {settings.baseline}, scale {settings.scale}")


def total_why(numbers: Numbers) -> dict[str, Number]:
    """Return what the tokens of a turn get, by part, and the arithmetic that puts the streams together."""
    step = numbers.step
    if step is None:
        return {part: numbers.total(part, "as stored") for part in PARTS}
    of: Mapping[StreamName, float | None] = {
        name: stream.advantages[step.index] for name, stream in step.advantages.streams.items()
    }
    advantages, likelihood = step.scheme.advantages, number(step.scheme.rewards.likelihood_weight)
    of_gen, of_judge = written(number(advantages.lambda_gen)), written(number(advantages.lambda_judge))
    weights: dict[StreamName, str] = {
        "mixed": "",
        **_weights(step),
        "shaping": "",
        "likelihood": written(likelihood),
    }
    of_peer, of_truth = step.advantages.weights
    factors: dict[StreamName, float] = {"peer": of_peer, "truth": of_truth, "likelihood": likelihood}
    streams: list[StreamName] = [name for name in weights if name in of]
    summed = _sum((weights[name], of[name], factors.get(name, 1.0)) for name in streams)
    known = all(step.knows(name) for name in of if name not in ("judge", "persuasion"))
    names = ", ".join(f"A_{one}" for one in streams)
    source = f"lambda_gen * the weighted sum of {names}; a missing part is left out"
    found = {
        "generator": numbers.total("generator", source, f"{of_gen} * ({summed})", known=known),
        "judge": numbers.total(
            "judge",
            "lambda_judge * A_judge",
            f"{of_judge} * {written(of['judge'])}",
            known=step.knows("judge"),
        ),
        "format": numbers.total(
            "format",
            "A_format, on the judge's tokens; without any, on the token that ended the reply",
            written(of["format"]),
            known=step.knows("format"),
        ),
    }
    parts: tuple[StreamName, ...] = ("peer", "truth", *(one for one in BESIDE if one in of))
    for name in parts:
        weight = f"{weights[name]} * " if weights[name] else ""
        part, known = f"{of_gen} * {weight}{written(of.get(name))}", name not in of or step.knows(name)
        source = f"lambda_gen * its weight * A_{name}"
        found[name] = numbers.total(name, source, part, known=known)
    if of.get("persuasion") is not None:
        formula = f"{written(number(advantages.lambda_critic))} * {written(of['persuasion'])}"
        source = "lambda_critic * A_persuasion"
        found["critic"] = numbers.total("critic", source, formula, known=step.knows("persuasion"))
    return found
