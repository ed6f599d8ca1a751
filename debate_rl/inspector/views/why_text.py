"""Why this reward, as text: a sentence whose rounded figures add up, and all parts as blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from debate.types import TurnId
from debate_rl.formatting import counted, figure
from debate_rl.inspector.blocks import (
    Block,
    Line,
    Section,
    Span,
    Table,
    Words,
    cut,
    grade,
    to_debate,
    to_turn,
)
from debate_rl.inspector.views.debate import grade_name
from debate_rl.inspector.views.votes import if_reversed
from transcripts.record import named

if TYPE_CHECKING:
    from debate_rl.inspector.views.why import Number, Why

Facts: TypeAlias = dict[str, Any]
"""Facts by name: texts, numbers, turns, grades, a ``Number``, or rows of facts."""
NO_LABEL = "no label"
LONGEST, MOST_ROWS = 160, 100
"""Maximum number of characters of a formula (longer: only the value is shown); maximum rows of a table."""
NOTHING = 1e-12
"""Smaller values are rounding errors."""
_BESIDE = {
    "shaping": "shaping: novelty, copying or length",
    "likelihood": "likelihood of the gold answer after the reasoning",
}
Term: TypeAlias = tuple[float, str]
"""A term of a sum, and its reason."""


def sentence(parts: Facts) -> str:
    """Return the advantage of the solution's tokens and the reasons, then the same for the vote's tokens.

    If rounded terms do not add up, the rest is a term of its own. ``parts``: those of ``Why``.
    """
    peer, truth, judge, format = (parts[name] for name in ("peer", "truth", "judge", "format"))
    streams, total = parts["streams"], parts["total"]
    by_name = {stream["name"]: stream for stream in streams}
    about = "a due vote is valid" if format["counted"] else "no due vote is valid"
    form = [(value, about) for value in _values(total, "format") if abs(value) > NOTHING]
    clauses: list[str] = []
    if peer is not None and truth is not None:
        earned = _sum(_generator(peer, truth, by_name, total), sum(_values(total, "generator")))
        clauses.append(earned + _silent(by_name, "peer", "truth", "mixed"))
    if "critic" in total:
        [value] = _values(total, "critic") or [0.0]
        clauses.append("its criticism: " + _sum([(value, "score drops of its targets")], value))
    given = _values(total, "judge")
    if peer is None or judge["votes"] or form or given:
        terms = [*((value, _judged(judge)) for value in given), *form]
        earned = _sum(terms, sum(_values(total, "judge", "format")), none=_no_judge_signal(judge))
        clauses.append(("" if peer is None else "its votes: ") + earned + _silent(by_name, "judge"))
    return "; ".join(clauses)


def _values(total: Mapping[str, Number], *names: str) -> list[float]:
    """Return the known values of some parts, as recomputed or else as stored."""
    values = (total[name].stored if total[name].value is None else total[name].value for name in names)
    return [value for value in values if value is not None]


def _generator(
    peer: Facts, truth: Facts, streams: Mapping[str, Facts], total: Mapping[str, Number]
) -> list[Term]:
    """Return the parts of the generator's advantage, or one part if they were mixed or not stored."""
    terms = [(total[name].value or 0.0, about) for name, about in _BESIDE.items() if name in total]
    terms = [term for term in terms if term[0]]
    votes, grade = _received(peer), _graded(truth, streams.get("truth") or streams.get("mixed"))
    if _values(total, "peer", "truth"):
        votes += _baseline(streams.get("peer"))
        both = (("peer", votes), ("truth", grade))
        return [*terms, *((value, about) for name, about in both for value in _values(total, name))]
    rest = [value - sum(value for value, _ in terms) for value in _values(total, "generator")]
    about = f"peer and truth together: {votes}; {grade}"
    return terms + [(value, about) for value in rest if value or not terms]


def _received(peer: Facts) -> str:
    """Return the results of the valid votes on a turn."""
    judges = len({vote["judge"] for vote in peer["votes"] if vote["counts"]})
    valid = peer["won"] + peer["lost"] + peer["ties"]
    if not valid:
        return "no valid vote on it"
    if valid in (peer["won"], peer["lost"]):
        everybody = {1: "its one judge", 2: "both judges"}.get(judges, f"all {judges} judges")
        return f"{everybody} preferred {'it' if peer['won'] else 'another'}"
    ties = f", {counted(peer['ties'], 'tie')}" if peer["ties"] else ""
    return f"{peer['won']} of {counted(valid, 'vote')} preferred it{ties}"


def _baseline(stream: Facts | None) -> str:
    """Return the baseline, if the part's sign differs from the reward's or there is no other term."""
    centre = stream["centre"].value if stream and stream["centre"] else None
    if stream is None or centre is None:
        return ""
    reward, advantage = stream["reward"].value or 0.0, stream["advantage"].value or 0.0
    turned = abs(advantage) > NOTHING and reward * advantage <= 0
    return f"; its baseline is {figure(centre)}" if turned else ""


def _graded(truth: Facts, stream: Facts | None) -> str:
    """Return the grade, and how many in the group were right, or else the baseline."""
    name, by = grade_name(truth["grade"]), truth["by"]
    grade = {"missing": "no answer", "ungraded": "not graded"}.get(name, name)
    if by:
        grade = by if truth["grade"] is None else f"{grade} by {by}"
    elif truth["verdict"] and name == "ungraded":
        return truth["verdict"] + _baseline(stream)
    if members := stream["members"] if stream else ():
        right = sum(member["right"] for member in members)
        return f"{grade}; {right} of {len(members)} in its group were right"
    return grade + _baseline(stream)


def _judged(judge: Facts) -> str:
    """Return how many of a turn's votes were right, or agreed with other judges."""
    counting = [vote for vote in judge["votes"] if vote["counts"]]
    decided = [vote for vote in counting if [side is True for side in vote["left_right"]].count(True) == 1]
    for values, of, end in (
        ([vote["truth"] for vote in decided], "decidable vote", " right"),
        ([vote["consensus"] for vote in counting], "vote", " as the other judges"),
    ):
        if known := [value for value in values if value is not None]:
            return f"{known.count(1)} of {counted(len(known), of)}{end}"
    return counted(len(counting), "valid vote")


def _no_judge_signal(judge: Facts) -> str:
    """Return why the votes have no advantage."""
    if not any(vote["counts"] for vote in judge["votes"]):
        return "no valid vote"
    valued = any(vote["value"].value is not None for vote in judge["votes"])
    return "no signal" if valued else "none of its votes has a value"


def _silent(streams: Mapping[str, Facts], *names: str) -> str:
    """Return the streams with a value but without a signal, and the reasons."""
    text = ""
    for name, one in ((name, streams[name]) for name in names if name in streams):
        if one["reward"].value is not None and one["advantage"].value is None:
            text += f"; nothing from {name}: {one['advantage'].source.removeprefix('no signal: ')}"
    return text


def _sum(terms: Sequence[Term], total: float, *, none: str = "no signal") -> str:
    """Return the sum of the terms as text: "+0.28 = +0.50 (why) - 0.22 (why)". The written numbers add up.

    The number of digits, 2 to 6, is the smallest that shows every term as nonzero.

    >>> _sum([(0.5, "a"), (-0.25, "b")], 0.25), _sum([(0.5, "a")], 0.5), _sum([], 0.0)
    ('+0.25 = +0.50 (a) - 0.25 (b)', '+0.50 (a)', '0 (no signal)')
    >>> _sum([(1 / 3, "a"), (1 / 3, "b")], 2 / 3)
    '+0.67 = +0.33 (a) + 0.33 (b) + 0.01 (rounding)'
    """
    if not terms:
        return f"0 ({none})"
    sizes = [abs(value) for value in (total, *(value for value, _ in terms)) if abs(value) > NOTHING]
    digits = next((n for n in range(2, 6) if min(sizes, default=1) * 10**n >= 0.5), 6)
    units = [(round(value * 10**digits), about) for value, about in terms]
    whole = round(total * 10**digits)
    if left := whole - sum(value for value, _ in units):
        units.append((left, "rounding" if abs(left) <= len(terms) else "not explained by stored values"))
    first, *more = [f"{value / 10**digits:+.{digits}f} ({about})" for value, about in units]
    rest = "".join(f" {text[0]} {text[1:]}" for text in more)
    return f"{whole / 10**digits:+.{digits}f} = {first}{rest}" if more else first


def why_blocks(why: Why) -> list[Block]:
    """Return the sentence, then each part of the explanation with its numbers."""
    badges = [number.matches for number in why.numbers() if number.matches is not None]
    verdict = Span("no recomputed number could be compared with a stored value", "faint")
    if badges:
        verdict = Span("all numbers equal the stored values", "right")
    if False in badges:
        verdict = Span(f"{badges.count(False)} of {len(badges)} numbers differ from stored values", "wrong")
    blocks: list[Block] = [Line((Span("advantage: ", "faint"), why.sentence), "sentence", name="sentence")]
    blocks += [Line(f"note: {note}", "notice", name="note") for note in why.notes]
    blocks += [Line(verdict, name="matches")]
    peer, truth, judge, form = why.peer, why.truth, why.judge, why.format
    if peer is not None:
        rule = f", rewards.peer = {peer['rule']}" if peer["rule"] else ""
        title = f"peer: {peer['won']} won, {peer['lost']} lost, {peer['ties']} ties{rule}"
        blocks.append(_part(why, "peer", title, peer, reward="peer reward"))
    if truth is not None:
        by = f" by {truth['by']}" if truth["by"] else " against gold" * (truth["gold"] is not None)
        by = f": {NO_LABEL}" if truth["by"] == NO_LABEL else by
        title = f"truth: {grade_name(truth['grade'])}{by}"
        blocks.append(_part(why, "truth", title, truth, reward="truth reward"))
    weight = "" if judge["truth_weight"] is None else f", weight of truth {figure(judge['truth_weight'])}"
    title = f"judge: {counted(len(judge['votes']), 'vote')} given{weight}"
    blocks.append(_part(why, "judge", title, judge, reward="judge reward"))
    due = f"due on {len(form['comparable'])} solutions" if form["due"] else "not due"
    title = f"format: comparisons {due}, valid votes: {form['counted']}"
    blocks.append(_part(why, "format", title, form, reward="format penalty"))
    for one in why.streams:
        how = f"baseline {one['baseline']}, scale {one['scale']}, group by {one['key']}"
        names = {"reward": "value", "centre": "baseline", "spread": "spread", "advantage": f"A_{one['name']}"}
        title = f"advantage of {one['name']}: {how}"
        blocks.append(_part(why, f"stream-{one['name']}", title, one, **names))
    of_generator = ("peer", "truth", "shaping", "likelihood")
    names = {name: f"  part of {name}" if name in of_generator else name for name in why.total}
    return [*blocks, _part(why, "total", "advantage of the tokens", why.total, **names)]


def _part(why: Why, name: str, title: str, facts: Mapping[str, Any], **numbers: str) -> Section:
    """Return one part: its facts, its rows, and its numbers under the given names."""
    blocks: list[Block] = []
    if name == "truth":
        gold = "" if facts["gold"] is None else " against gold"
        if facts["by"] and facts["audit"] is not None:
            blocks.append(Line((grade(grade_name(facts["audit"])), f"{gold}, as an audit without reward")))
        said = {"answer": facts["answer"], "gold": facts["gold"]}
        blocks += [Line((f"{key}: ", Span(text, "answer"))) for key, text in said.items() if text is not None]
        blocks += [Line(f"{'followed' if met else 'not followed'}: {one}") for one, met in facts["parts"]]
        blocks += [] if facts["score"] is None else [Line(f"score: {figure(facts['score'])}")]
        blocks += [Line(facts["verdict"], name="verdict")] if facts["verdict"] else []
    for reason, detail in facts.get("failures", ())[:MOST_ROWS]:
        blocks.append(Line((f"malformed: {reason.replace('_', ' ')} ", Span(detail, "code"))))
    for key in ("votes", "opponents", "members"):
        if rows := facts.get(key):
            if key == "members" and facts["name"] not in GRADED:
                rows = [{about: value for about, value in row.items() if about != "right"} for row in rows]
            blocks += _rows(why, key, rows)
    shown = [(about, facts[key]) for key, about in numbers.items() if facts[key] is not None]
    blocks += [Line((f"{about}: ", *_number(number))) for about, number in shown]
    return Section(title, blocks, name=f"why-{name}")


CAPTIONS = {"votes": "by vote", "opponents": "by opponent", "members": "by turn of the group"}
HEADS = {
    "left_right": "sides are",
    "why_not": "why not",
    "line": "the judge's line",
    "ties": ">ties",
    "id": "debate",
    "this": "this turn",
}
GRADED = ("peer", "truth", "mixed")
"""The streams that reward solutions. In groups of other streams the grades of solutions say nothing."""


def _rows(why: Why, name: str, rows: Sequence[Facts]) -> list[Block]:
    """Return facts as the rows of a table, without empty columns."""
    keys = [key for key in rows[0] if any(row[key] not in (None, "", False) for row in rows)]
    keys.sort(key="line".__eq__)

    def is_number(key: str) -> bool:
        first, *_ = column = [row[key] for row in rows]
        return not isinstance(first, bool) and all(isinstance(value, int | float | None) for value in column)

    heads = [">" * is_number(key) + HEADS.get(key, key.replace("_", " ")) for key in keys]
    cells, more = cut([[_cell(why, row, key) for key in keys] for row in rows], MOST_ROWS)
    return [Table(heads, cells, CAPTIONS[name], name=name, row_name=f"{name}-row", kind="plain"), *more]


def _cell(why: Why, row: Facts, key: str) -> Words:
    value = row[key]
    if isinstance(value, TurnId):
        if "id" in row:  # a member of a group, possibly from another debate
            return Span(f"turn {named(value)}", link=to_debate(row["id"], "why", value))
        return Span(why.handle(value), link=to_turn(why.id, value))
    if key == "left_right":
        return (grade(grade_name(value[0])), ", ", grade(grade_name(value[1])))
    if key == "value" and not isinstance(value, float):
        return _number(value)
    if key == "outcome":
        return {"left": ">", "right": "<", "tie": "="}.get(str(value), "?")
    if key == "counts":
        return ("yes" if value else "no", *_reversed(why, row))
    if isinstance(value, bool):
        return "yes" if value else "" if key == "this" else "no"
    if isinstance(value, int | float) or value is None:
        return figure(value) if value is not None else "–"
    return Span(value, "code") if key == "line" else value.replace("_", " ") if key == "why_not" else value


def _reversed(why: Why, row: Facts) -> tuple[Span, ...]:
    """Return the link to the effect of the opposite vote; nothing for a tie."""
    if "result" in row:
        judge, won, lost = row["judge"], why.turn, row["other"]
        turned = row["result"] == "lost"
        tie = row["result"] == "tie"
    else:
        judge, won, lost = why.turn, row["left"], row["right"]
        turned, tie = row["outcome"] == "right", row["outcome"] == "tie"
    better, worse = (won, lost) if turned else (lost, won)
    return () if tie else (if_reversed(why.id, why.handles, judge, better, worse),)


def _number(number: Number) -> list[str | Span]:
    """Return a number with its arithmetic, a mark if it differs from the stored value, and its source."""
    text = number.text if len(number.formula) <= LONGEST else figure(number.value)
    words: list[str | Span] = [Span(text, "code")]
    if number.matches is False:
        words += [" ", Span(f"[differs]; stored: {figure(number.stored)}", "wrong")]
    if number.source:
        words += [" ", Span(f"({number.source})", "faint")]
    return words
