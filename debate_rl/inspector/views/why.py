"""Why this reward? Votes, rewards, baselines and advantages of one turn, each number with its source.

The functions of training recompute the whole step. A part is a dict of facts by name, as in the JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from debate.ramps import number
from debate.types import TurnId, Vote
from debate_rl.formatting import counted, figure
from debate_rl.inspector.views.debate import handles_of, verdict_text
from debate_rl.inspector.views.why_text import NO_LABEL, Facts, sentence
from debate_rl.replay.scheme import (
    Scheme,
    ScoredStep,
    advantages_of_step,
    close,
    means_before,
    scheme_of,
    score_step,
)
from envs.errors import MissingPackageError
from envs.instructions import ConstraintError, constraints_of, follows
from envs.registry import key_by_itself
from learner.advantages import Advantages, turns
from learner.advantages.baselines import BATCH_STD_FLOOR, GROUP_STD_EPS, GroupParts
from learner.advantages.config import EMA_DECAY
from learner.advantages.turns import BESIDE, StreamName
from rewards import ballot_box, drop_reasons
from rewards.bradley_terry import fitted_together, preference
from rewards.criticism import criticised, persuasions
from rewards.graph import Results, results_by_opponent, total
from rewards.judge_rewards import VoteValue, consistencies, values_of_votes
from rewards.labels import OF_TRUTH
from rewards.overlong import is_overlong_masked
from rewards.shaping import shaping_of
from rewards.truth import TRUTH_SETTINGS, counts_partly, grade_of, score_of, truth_turns
from rewards.types import stream_named, value_of
from rewards.votes import sign
from transcripts import Record, RunStore, TranscriptError
from transcripts.record import PARTS, named

if TYPE_CHECKING:
    from debate_rl.config import Config
    from learner.types import Transition

SOURCES: Final = {
    "margin": "(won - lost) / (won + lost + ties)",
    "win_rate": "(won + ties / 2) / (won + lost + ties)",
    "net_wins": "won - lost",
    "copeland": "mean over opponents of the sign of won minus lost",
    "bradley_terry": "log-strengths of a connected component are centred: minus the sum of the others'",
    "shaping": "novelty bonus, copy penalty, length penalty, and bonus for a better revision",
    "likelihood": "mean log-probability of a gold token after the reasoning, minus the baseline's",
    "persuasion": "for each target: its score by the others minus the score of its revision",
    "help": "for each target: the score of its revision by the others minus the score of its solution",
    "group": "mean of the group",
    "rloo": "mean of the others in the group",
    "scale group": f"standard deviation of the group; divisor, plus {GROUP_STD_EPS:g}",
    "scale batch": f"standard deviation of all values of the step; divisor, at least {BATCH_STD_FLOOR}",
}
"""The source of a number: by peer rule, stream, critic's rule, baseline and scale."""
OF_FORMAT = "A_format, on the judge's tokens, or on the last token of a reply without judge tokens"
_FIGURE = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Number:
    """One number of the explanation. ``value``: as recomputed, or None.

    ``formula``: arithmetic with unrounded figures that gives the value, or "". ``stored``: the value in the
    transcript. ``matches``: whether both values agree up to rounding, if comparable. ``source``: the origin
    of the value, or why there is no value.
    """

    value: float | None = None
    formula: str = ""
    stored: float | None = None
    matches: bool | None = None
    source: str = ""

    @property
    def text(self) -> str:
        """The formula with rounded figures, and its value.

        >>> Number(1 / 3, "(2.0 - 1.0) / (2 + 1 + 0)").text
        '(2 - 1) / (2 + 1 + 0) = 0.3333'
        >>> Number(-1.0, "(-1.0)").text, Number(None).text
        ('-1', 'none')
        """
        shown = figure(self.value if self.value is not None else self.stored)
        formula = _FIGURE.sub(lambda match: f"{float(match[0]):.4g}", self.formula)
        return f"{formula} = {shown}" if formula.strip("()") not in ("", shown) else shown


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation of a turn's rewards. ``sentence`` summarizes the advantages of its tokens.

    ``peer`` and ``truth`` are None for a final ballot. ``streams`` is empty if nothing could be recomputed;
    ``notes`` say why. ``matches``: whether all comparable numbers equal the stored values, None without any.
    """

    id: str
    turn: TurnId
    persona: str
    problem: str
    ballot: bool
    peer: Facts | None
    truth: Facts | None
    judge: Facts
    format: Facts
    streams: tuple[Facts, ...]
    total: dict[str, Number]
    sentence: str
    notes: tuple[str, ...] = ()
    matches: bool | None = None
    handles: tuple[str, ...] = ()

    def handle(self, turn: TurnId) -> str:
        """Return the handle of a turn's agent, or its address if the agent never spoke."""
        known = self.handles[turn.agent] if turn.agent < len(self.handles) else ""
        return known or named(turn)

    def numbers(self) -> list[Number]:
        """Return every number of the explanation."""
        return list(_numbers([self.peer, self.truth, self.judge, self.format, self.streams, self.total]))


def _numbers(part: object) -> Iterator[Number]:
    if isinstance(part, Number):
        yield part
    elif isinstance(part, Mapping | Sequence) and not isinstance(part, str):
        for item in part.values() if isinstance(part, Mapping) else part:
            yield from _numbers(item)


def why(store: RunStore, config: Config | None, id: str, turn: TurnId, *, note: str = "") -> Why:
    """Return the explanation of a turn. Without a configuration, it has only stored numbers.

    ``note``: why there is no configuration. TranscriptError without such a debate or turn, or if the turns do
    not fit the protocol.
    """
    record = store.debate(id)
    debate, id = record.debate, ".".join(str(int(part)) for part in id.split("."))  # as the run writes it
    known = [turn.id for turn in debate.turns]
    if turn not in known:
        there = ", ".join(map(named, known)) or "none"
        raise TranscriptError(f"debate {id}: no turn {named(turn)}; there are {there}")
    of, step, notes = debate.turn(turn), None, list[str]()
    if note or config is None:
        notes.append(note or "no configuration: only stored values are shown")
    if not debate.protocol.learns(turn.agent):
        seat = debate.protocol.seat(turn.agent)
        notes.append(f"the seat is {seat}: this turn is not learned from, so only stored values are shown")
    elif config is not None:
        try:
            step = recompute(store, scheme_of(config), id, turn)
        except Exception as error:  # a custom rule may raise any error
            reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            missing = "cannot be recomputed, so only stored values are shown"
            notes.append(f"step {record.step} {missing}: {reason}")
    case = _Case(record, turn, step)
    concerned = {"persuasion": of.parsed.criticisms is not UNSET, "format": turns.owes(of), "judge": True}
    parts: Facts = {
        "peer": None if of.ballot else case.peer(),
        "truth": None if of.ballot else case.truth(),
        "judge": case.judge(),
        "format": case.format(),
        "streams": tuple(one for one in _streams(case) if concerned.get(one["name"], not of.ballot)),
        "total": case.total(),
    }
    badges = [one.matches for one in _numbers(parts) if one.matches is not None]
    return Why(
        id=id,
        turn=turn,
        persona=debate.personas[turn.agent].name,
        problem=debate.problem.id,
        ballot=of.ballot,
        **parts,
        sentence=sentence(parts),
        notes=(*notes, *_notes(store, record, config, turn, step)),
        matches=all(badges) if badges else None,
        handles=handles_of(record),
    )


def _notes(
    store: RunStore, record: Record, config: Config | None, turn: TurnId, step: Step | None
) -> Iterator[str]:
    if config is not None and config.train.control != "none":
        drawn = config.train.draws_rewards
        what = "a coin toss replaces truth" if drawn else "votes differ from the judges' lines"
        yield f"train.control = {config.train.control_and_share[0]}: {what}"
    if record.rewards is None:
        yield "no rewards are stored with this debate"
    damaged = [line for line in store.damage if line.startswith(f"step {record.step},")]
    if damaged and step is not None:
        yield f"{counted(len(damaged), 'damaged line')} in this step; the baselines omit their debates"
    if config is not None and is_overlong_masked(record.debate.turn(turn), config.rewards):
        yield 'rewards.overlong = "mask": the reply was cut at its token limit, so it is not learned from'


@dataclass(frozen=True, slots=True)
class Step:
    """A step under a scheme: debate ids, rewards, and advantages with their parts.

    ``index``: of the explained turn. ``means_known``, ``means_source``: whether the running means before the
    step are known, and the steps that they come from.
    """

    scheme: Scheme
    ids: tuple[str, ...]
    scored: ScoredStep
    advantages: Advantages
    index: int
    means_known: bool
    means_source: str

    @property
    def own(self) -> Transition:
        """The transition of the explained turn."""
        return self.scored.transitions[self.index]

    def knows(self, stream: StreamName) -> bool:
        """Return whether a stream's advantages are known. They may need unknown running means."""
        measured = stream in ("peer", "mixed") and self.scheme.rewards.peer_weight == "measured"
        rae = getattr(self.scheme.advantages, stream).baseline == "rae"
        return self.means_known or not (measured or rae)


def recompute(store: RunStore, scheme: Scheme, id: str, turn: TurnId) -> Step:
    """Return the recomputed step of a turn. Raise an error if the step's debates do not allow it."""
    step = int(id.partition(".")[0])
    held = dict(store.records(f"step:{step}"))
    ids, scored = tuple(held), score_step(list(held.values()), scheme)
    means, known, source = means_before(store, scheme, step)
    advantages = advantages_of_step(scored, scheme, means)
    index = [(ids[one.debate], one.turn.id) for one in scored.transitions].index((id, turn))
    return Step(scheme.at_step(step), ids, scored, advantages, index, known, source)


class _Case:
    """A turn with its record, and its recomputed step or None.

    ``cast``: the debate's votes, each with the reason why it does not count, or "".
    """

    def __init__(self, record: Record, turn: TurnId, step: Step | None) -> None:
        self.record, self.debate, self.turn, self.step = record, record.debate, turn, step
        self.scheme = None if step is None else step.scheme.rewards
        self.scores = None if step is None else step.scored.rewards[step.own.debate]
        self.credit = (record.credit or OF_TRUTH) if step is None else step.scored.credits[step.own.debate]
        self.graded = self.credit.grades_of_truth(record.correct)
        self.box = ballot_box(self.debate, judge_own=self.scheme is None or self.scheme.judge_own)
        self.cast = list(zip(self.debate.votes, drop_reasons(self.box), strict=True))
        self.counted = [vote for vote, reason in self.cast if not reason]

    def reward(self, stream: str, source: str, formula: str | None = None) -> Number:
        """Return a reward of the turn. Without a formula, it has only a value."""
        both = (self.scores, self.record.rewards)
        new, old = (value_of(stream_named(rewards, stream), self.turn) for rewards in both)
        return self._number(new, old, source, formula) if self.step else Number(stored=old, source=source)

    def _number(
        self, value: float | None, stored: float | None, source: str, formula: str | None, kept: bool = True
    ) -> Number:
        text = "" if value is None else written(value) if formula is None else formula
        matches = close(stored, value) if kept and self.record.rewards is not None else None
        return Number(value, text, stored, matches, source)

    def votes(self) -> Iterator[tuple[Vote, str, Facts]]:
        """Yield each vote, why it does not count, and the judge's line."""
        for vote, reason in self.cast:
            text = self.debate.turn(vote.judge).completion.text
            line = vote.span.of(text) if vote.span else ""
            yield vote, reason, {"line": line, "counts": not reason, "why_not": reason}

    def peer(self) -> Facts:
        """Return the votes on the turn, its results by opponent, and its peer reward."""
        turn, rule = self.turn, "" if self.scheme is None else self.scheme.peer
        row, votes = results_by_opponent(self.counted).get(turn, {}), list[Facts]()
        results: dict[str, int] = dict(zip(("won", "lost", "ties"), total(row), strict=True))
        for vote, _, said in self.votes():
            if turn in (vote.left, vote.right):
                preferred = (vote.outcome == "left") == (vote.left == turn)
                result = "tie" if vote.outcome == "tie" else "won" if preferred else "lost"
                other = vote.right if vote.left == turn else vote.left
                persona = self.debate.personas[vote.judge.agent].name
                votes += [{"judge": vote.judge, "persona": persona, "other": other, "result": result} | said]
        source, formula = SOURCES.get(rule, rule and f"{rule} returns the value"), ""
        if row and source.startswith(("(", "won")):
            formula = re.sub("won|lost|ties", lambda name: str(results[name[0]]), source)
        reward = self.reward("peer", source if row else "no valid vote names this turn", formula)
        opponents = list(self._opponents(row))
        return {"rule": rule, "votes": votes, **results, "opponents": opponents, "reward": reward}

    def _opponents(self, row: Mapping[TurnId, Results]) -> Iterator[Facts]:
        """Yield the opponents of the turn under the peer rule. Bradley-Terry fits a connected component."""
        fits = self.scheme is not None and self.scheme.peer == "bradley_terry" and row
        together, scores = fitted_together(self.counted) if fits else (), stream_named(self.scores, "peer")
        own = value_of(scores, self.turn)
        for other in next((part for part in together if self.turn in part), sorted(row)):
            if other != self.turn:
                (won, lost, ties), score = row.get(other, Results()), value_of(scores, other)
                beats = preference(own or 0.0, score or 0.0) if together else None
                results = {"won": won, "lost": lost, "ties": ties, "sign": sign(won - lost)}
                yield {"turn": other, **results, "score": score, "beats": beats}

    def truth(self) -> Facts:
        """Return the grade of the turn, the reference used for grading, and the truth reward."""
        record, scheme, turn, kind = self.record, self.scheme, self.debate.turn(self.turn), self.credit.truth
        grade = grade_of(self.turn, self.graded)
        setting, formula, verdict = TRUTH_SETTINGS[grade], "", verdict_text(record, self.turn)
        source = f"rewards.{setting}"
        if not setting:
            source = "the answer is ungraded, which does not count as wrong"
            if kind == "none":
                source = "the problem has no label: rewards.labels"
            elif kind != "truth":
                source = f'no answer became the pseudo-label: rewards.pseudo = "{kind}"'
            elif record.correct is None:
                source = "the problem has no gold answer"
        elif scheme is not None and self.turn not in truth_turns(self.box, scheme):
            setting, source = "", 'not the last round: rewards.truth_rounds = "last"'
        score = score_of(turn) if kind == "truth" else None
        if scheme is not None and score is not None and counts_partly(grade, scheme, score):
            source = f'score {score:g}: rewards.truth_credit = "partial"'
            wrong, right = scheme.truth_wrong, scheme.truth_correct
            formula = f"{wrong:g} + {score:g} * ({right:g} - {wrong:g})"
        if record.correct is None and verdict:
            source = f"a {verdict}" if verdict.startswith("verdict") else verdict
        return {
            "answer": turn.parsed.answer,
            "gold": self.debate.problem.answer,
            "grade": grade,
            "setting": setting,
            "reward": self.reward("truth", source, formula),
            "score": score,
            "parts": self._instructions(turn.parsed.answer),
            "verdict": verdict,
            "by": self._graded_by(),
            "audit": grade_of(self.turn, record.correct),
        }

    def _graded_by(self) -> str:
        """Return the reference that replaced the gold answer in grading, or ""."""
        kind, labels, round_ = self.credit.truth, self.credit.labels, self.turn.round
        if kind in ("truth", "coin"):
            return "" if kind == "truth" else "a coin"
        said = labels[round_] if kind != "none" and round_ < len(labels) else None
        return NO_LABEL if said is None else f"the pseudo-label {said} ({kind})"

    def _instructions(self, answer: str | None) -> list[tuple[str, bool]]:
        """Return each instruction and whether the answer follows it, or [] without instructions."""
        problem = self.debate.problem
        if problem.kind != "instructions" or problem.answer is None or answer is None:
            return []
        try:
            constraints = constraints_of(problem.answer)
            met = follows(answer, constraints)
        except (ConstraintError, MissingPackageError):  # another environment, or a missing language detector
            return []
        return [(constraint.id, one) for constraint, one in zip(constraints, met, strict=True)]

    def judge(self) -> Facts:
        """Return the turn's votes with their values, and the judge reward, which is their mean."""
        correct, scheme = self.credit.grades_of_judges(self.record.correct), self.scheme
        weight, worth = None, dict[int, VoteValue]()
        if scheme is not None:
            weight = scheme.judge_weight_of_truth(verifiable=correct is not None)
            values = values_of_votes(self.counted, correct, scheme, self.record.verdicts or None)
            worth = dict(zip(map(id, self.counted), values, strict=True))
        given: list[Facts] = []
        for vote, reason, said in self.votes():
            if vote.judge == self.turn:
                found = worth.get(id(vote), VoteValue(None, None, None, None))
                value = _worth(found, weight)
                if reason or scheme is None:
                    unknown = "unknown without a configuration"
                    value = Number(source=f"does not count: {reason}" if reason else unknown)
                sides = {"left": vote.left, "outcome": vote.outcome, "right": vote.right}
                grades = grade_of(vote.left, correct), grade_of(vote.right, correct)
                judged = {name: getattr(found, name) for name in ("truth", "others", "consensus", "verdict")}
                given.append({**sides, "left_right": grades, **judged, "value": value, **said})
        source = "mean value of the votes with a value"
        if not any(vote["counts"] for vote in given):
            source = "the turn gave no valid vote"
        elif weight is not None and all(vote["value"].value is None for vote in given):
            source = "no vote has a value: see each vote"
        if scheme is not None and number(scheme.swap_weight):
            twice = consistencies(self.debate, judge_own=scheme.judge_own).get(self.turn)
            if twice is not None:
                source += f", and {twice:g} for consistency with a second ballot: rewards.swap_weight"
        return {"truth_weight": weight, "votes": given, "reward": self.reward("judge", source)}

    def format(self) -> Facts:
        """Return whether comparisons were due, the number of valid votes, the failures, and the penalty."""
        turn = self.debate.turn(self.turn)
        counted, due = sum(vote.judge == turn.id for vote in self.counted), turn.id in self.box.due()
        source = "comparisons were due and no vote is valid: rewards.format_penalty"
        if not due or counted:
            source = f"valid votes: {counted}, so no format penalty" if due else "no comparison was due"
        failures = [(failure.reason.value, failure.detail) for failure in turn.parsed.failures]
        facts = {"due": due, "comparable": turn.compared, "counted": counted, "failures": failures}
        return {**facts, "reward": self.reward("format", source)}

    def total(self) -> dict[str, Number]:
        """Return the advantage of the turn's tokens by part: the weighted sum over streams."""
        step = self.step
        if step is None:
            return {part: self._advantage(part, "as stored", "", known=False) for part in PARTS}
        config = step.scheme.advantages
        of = {name: stream.advantages[step.index] for name, stream in step.advantages.streams.items()}
        weights: dict[StreamName, float] = dict.fromkeys(step.advantages.streams, 1.0)
        weights["peer"], weights["truth"] = step.advantages.weights
        weights["likelihood"] = number(step.scheme.rewards.likelihood_weight)
        summed: list[StreamName] = [name for name in ("mixed", "peer", "truth", *BESIDE) if name in of]
        parts: dict[str, list[StreamName]] = {"generator": summed, "judge": ["judge"], "format": ["format"]}
        parts |= {"peer": ["peer"], "truth": ["truth"], **{name: [name] for name in BESIDE if name in of}}
        parts |= {"critic": ["persuasion"]} if of.get("persuasion") is not None else {}
        found: dict[str, Number] = {}
        for part, names in parts.items():
            key = {"judge": "lambda_judge", "critic": "lambda_critic", "format": ""}.get(part, "lambda_gen")
            formula = _weighted((weights[name], of.get(name)) for name in names)
            formula = f"{written(number(getattr(config, key)))} * ({formula})" if key else formula
            terms = ", ".join(f"A_{name}" for name in names)
            source = f"{key} * the weighted sum of {terms}; a missing part is left out" if key else OF_FORMAT
            known = all(step.knows(name) for name in names if name in of)
            found[part] = self._advantage(part, source, formula, known=known)
        return found

    def _advantage(self, part: str, source: str, formula: str, *, known: bool) -> Number:
        own = [getattr(one, part, None) for one in self.record.advantages if one.turn == self.turn]
        stored = own[0] if own and own[0] is not UNSET else None
        if self.step is None or not known:
            return Number(stored=stored, source=source)
        split = any(one.peer is not None or one.truth is not None for one in self.record.advantages)
        kept = part not in BESIDE and (split or part not in ("peer", "truth"))
        value = getattr(self.step.advantages.turns[self.step.index], part, None)
        return self._number(value, stored, source, formula, kept)


def written(value: float | None) -> str:
    """Return an unrounded number, in parentheses if negative; "" for None.

    >>> written(0.1), written(-1), written(None)
    ('0.1', '(-1)', '')
    """
    return "" if value is None else repr(value) if value >= 0 else f"({value!r})"


def _weighted(parts: Iterable[tuple[float, float | None]]) -> str:
    there = [part for part in parts if turns.scaled(part[1], part[0]) is not None]
    factors = ["" if weight == 1 else f"{written(weight)} * " for weight, _ in there]
    terms = [factor + written(value) for factor, (_, value) in zip(factors, there, strict=True)]
    return " + ".join(terms)


def _worth(worth: VoteValue, weight: float | None) -> Number:
    """Return the value of a valid vote by truth, the consensus of others and a verifier's preference."""
    if worth.value is None:
        undecided = "the pair is not decidable"
        balanced = "the other judges of the pair have no majority"
        both = f"{undecided}, and {balanced}"
        return Number(source=undecided if weight == 1 else balanced if weight == 0 else both)
    there = [name for name in ("truth", "consensus", "verdict") if getattr(worth, name) is not None]
    return Number(float(worth.value), written(float(worth.value)), source=" and ".join(there))


def _streams(case: _Case) -> Iterator[Facts]:
    """Yield the computation of the turn's advantage for each stream, or nothing without a recomputed step.

    ``members``: the turns of the baseline group. ``centre``: the subtracted baseline. ``spread``: the
    standard deviation that divides, or None.
    """
    step = case.step
    if step is None:
        return
    critics: tuple[StreamName, ...] = ("persuasion",) if "persuasion" in step.advantages.streams else ()
    for name in (*turns.generator_streams(step.scheme.rewards), "judge", *critics, "format"):
        settings, stream = getattr(step.scheme.advantages, name), step.advantages.streams[name]
        value, advantage = stream.values[step.index], stream.advantages[step.index]
        group = stream.groups.get(stream.keys[step.index])
        compares = settings.baseline in ("group", "rloo") or settings.scale == "group"
        own = group if value is not None else None
        centre = None if own is None else _centre(step, name, own)
        spread = own and own.std
        formula = written(value) if centre is None else f"({written(value)} - {written(centre.value)})"
        formula += f" / {written(own.divisor)}" if own is not None and own.divisor is not None else ""
        if stream.key == "pair" and (side := step.advantages.sides[step.index]):
            formula = f"({sum(stream.sides.values())} / (2 * {stream.sides[side]})) * {formula}"
        source = f"baseline {settings.baseline}, scale {settings.scale}"
        result = Number(advantage, formula, source=source)
        if not step.knows(name):
            result = Number(source="not computed: see the running mean")
        elif value is None:
            result = Number(source="no value, no signal")
        elif advantage is None:
            count = len(own.members) if own else 1
            alone = "alone in its group" if count == 1 else f"all {count} values of its group are equal"
            result = Number(source=f"no signal: {alone}")
        key = "persona" if settings.baseline == "rae" else stream.key
        members = list(_members(step, group)) if group is not None and compares else []
        divisor = None if spread is None else Number(spread, source=SOURCES[f"scale {settings.scale}"])
        yield {
            "name": name,
            "baseline": settings.baseline,
            "scale": settings.scale,
            "key": key,
            "reward": _value(case, step, name),
            "members": members,
            "centre": centre,
            "spread": divisor,
            "advantage": result,
        }


def _members(step: Step, group: GroupParts) -> Iterator[Facts]:
    for index, value in zip(group.members, group.values.tolist(), strict=True):
        one = step.scored.transitions[index]
        correct = step.scored.credits[one.debate].grades_of_truth(step.scored.records[one.debate].correct)
        where = {"id": step.ids[one.debate], "turn": one.turn.id, "persona": one.persona.name}
        right = grade_of(one.turn.id, correct) is True
        yield {**where, "value": value, "right": right, "this": index == step.index}


def _centre(step: Step, name: StreamName, group: GroupParts) -> Number | None:
    """Return the baseline that is subtracted from the value, or None."""
    if group.centre is None:
        return None
    baseline, key = getattr(step.scheme.advantages, name).baseline, step.advantages.streams[name].key
    if baseline == "rae" and not step.means_known:
        return Number(source=f"the persona's running mean is unknown: {step.means_source}")
    if baseline == "rloo" and len(group.members) == 1:
        return Number(source="no other turns in the group")
    mean = f"the persona's running mean before this step, decay {EMA_DECAY:g}; {step.means_source}"
    source = SOURCES.get(baseline, mean)
    if group.effects is not None:
        context = "context: whether the own last solution is right, right solutions shown"
        source = f"mean of the group, and the effect of the {context if key == 'context' else 'persona'}"
        source += "; without the turn itself" * (baseline == "rloo")
    centre = float(group.centre[group.members.index(step.index)])
    return Number(centre, written(centre), source=source)


def _value(case: _Case, step: Step, name: StreamName) -> Number:
    """Return the reward of a stream with its parts, if any."""
    rewards, formula, source = step.scheme.rewards, None, SOURCES.get(name, f"the {name} reward")
    if name in turns.CREDIT and (step.scheme.advantages.discount or name == "mixed"):
        return _returned(step, name)
    if name == "shaping" and (parts := shaping_of(case.debate, rewards, key_by_itself).get(case.turn)):
        formula = " + ".join(map(written, parts))
    elif name == "likelihood" and (read := case.record.likelihoods):
        value = value_of(read.logprobs, case.turn)
        formula = written(value) + ("" if read.baseline is None else f" - {written(read.baseline)}")
    elif name == "persuasion":
        source = SOURCES[rewards.critic] + "; 0 for a right target" * (rewards.persuasion_targets == "wrong")
        beta, terms = written(number(rewards.persuasion_beta)), list[str]()
        for one in criticised(case.debate, case.counted):
            earned = persuasions([one], case.graded, rewards).get(case.turn)
            before, after = written(one.before), written(one.after)
            helps, hurts = f"({after} - {before})", f"max(0, {before} - {after})"
            worth = helps if rewards.critic == "help" else hurts
            factor = beta if earned or not one.worth(rewards.critic) else "0"
            terms += [] if earned is None else [f"{factor} * {worth}"]
        formula = " + ".join(terms)
    return case.reward(name, source, formula)


def _returned(step: Step, name: StreamName) -> Number:
    """Return a mix of rewards, or the discounted sum of an agent's rewards from this round on."""
    own, weights, discount = step.own, step.advantages.weights, step.scheme.advantages.discount
    value, terms = step.advantages.streams[name].values[step.index], list[str]()
    if not discount:
        formula = _weighted(zip(weights, (own.peer, own.truth), strict=True))
        return Number(value, formula, source="peer and truth are mixed before the baseline")
    for one in step.scored.transitions:
        rounds = one.turn.id.round - own.turn.id.round
        if (one.debate, one.turn.id.agent) == (own.debate, own.turn.id.agent) and rounds >= 0:
            raw = turns.mixed(one.peer, one.truth, weights) if name == "mixed" else getattr(one, name)
            terms += [] if raw is None else [f"{discount} ** {rounds} * {written(raw)}"]
    source = "this round's reward plus the agent's discounted rewards of later rounds"
    return Number(value, " + ".join(terms), source=source)
