"""Why this reward, in one sentence: what the tokens get as a sum whose figures add up as they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from debate_rl.formatting import counted, figure
from debate_rl.inspector.views.debate import grade_name
from debate_rl.inspector.views.why_parts import Facts
from debate_rl.inspector.views.why_step import Number

FEWEST_DIGITS, MOST_DIGITS = 2, 6
NOTHING = 1e-12
"""What is smaller is rounding of floats."""
_BESIDE = {
    "shaping": "shaping: new, copied or long",
    "likelihood": "what the reasoning alone says of the gold answer",
}
Parts = Mapping[str, Number]


class Term(NamedTuple):
    """A part of a sum, and what it is for."""

    value: float
    about: str


def sentence(
    peer: Facts | None,
    truth: Facts | None,
    judge: Facts,
    format: Facts,
    streams: Sequence[Facts],
    total: Parts,
) -> str:
    """Return what the solution's tokens get and why, then what those of the votes get.

    A sum that rounding leaves open names what is left.
    """
    by_name = {stream["name"]: stream for stream in streams}
    about = "a valid vote, as was due" if format["counted"] else "no valid vote, and one was due"
    form = [Term(value, about) for value in _values(total, "format") if abs(value) > NOTHING]
    parts: list[str] = []
    if peer is not None and truth is not None:
        terms = list(_generator_terms(peer, truth, by_name, total))
        earned = _sum(terms, sum(_values(total, "generator")))
        parts.append(earned + _silent(by_name, ("peer", "truth", "mixed")))
    if "critic" in total:
        terms = [Term(value, "fallen scores of its targets") for value in _values(total, "critic")]
        parts.append("its criticism: " + _sum(terms, sum(_values(total, "critic"))))
    if peer is None or judge["votes"] or form or list(_values(total, "judge")):
        terms = [*(Term(value, _judged(judge)) for value in _values(total, "judge")), *form]
        earned = _sum(terms, sum(_values(total, "judge", "format")), none=_no_judge_signal(judge))
        parts.append(("" if peer is None else "its votes: ") + earned + _silent(by_name, ("judge",)))
    return "; ".join(parts)


def _values(total: Parts, *names: str) -> Iterator[float]:
    """Yield what parts are, as recomputed or else as stored, where they are anything."""
    for number in (total[name] for name in names):
        value = number.stored if number.value is None else number.value
        if value is not None:
            yield value


def _generator_terms(peer: Facts, truth: Facts, streams: Mapping[str, Facts], total: Parts) -> Iterator[Term]:
    """Yield the parts of the generator's advantage; one where they were mixed before, or are not stored."""
    beside = [Term(total[name].value or 0.0, why) for name, why in _BESIDE.items() if name in total]
    beside = [term for term in beside if term.value]
    yield from beside
    votes, grade = _received(peer), _graded(truth, streams.get("truth") or streams.get("mixed"))
    if not [*_values(total, "peer", "truth")]:
        rest = (value - sum(term.value for term in beside) for value in _values(total, "generator"))
        both = f"peer and truth together: {votes}; {grade}"
        yield from (Term(value, both) for value in rest if value or not beside)
        return
    yield from (Term(value, votes + _baseline(streams.get("peer"))) for value in _values(total, "peer"))
    yield from (Term(value, grade) for value in _values(total, "truth"))


def _received(peer: Facts) -> str:
    """Return how the valid votes on a turn went."""
    judges = len({vote["judge"] for vote in peer["votes"] if vote["counts"]})
    valid = peer["won"] + peer["lost"] + peer["ties"]
    if not valid:
        return "no valid vote names it"
    everybody = {1: "its one judge", 2: "both judges"}.get(judges, f"all {judges} judges")
    if valid in (peer["won"], peer["lost"]):
        return f"{everybody} preferred {'it' if peer['won'] else 'another'}"
    ties = f", {counted(peer['ties'], 'tie')}" if peer["ties"] else ""
    return f"{peer['won']} of {counted(valid, 'vote')} preferred it{ties}"


def _baseline(stream: Facts | None) -> str:
    """Return the baseline where the part has another sign than the reward, or else there would be none."""
    centre = stream["centre"].value if stream and stream["centre"] else None
    if stream is None or centre is None:
        return ""
    reward, advantage = stream["reward"].value or 0.0, stream["advantage"].value or 0.0
    turned = abs(advantage) > NOTHING and reward * advantage <= 0
    return f"; its baseline is {figure(centre)}" if turned else ""


def _graded(truth: Facts, stream: Facts | None) -> str:
    """Return the grade, and how many of the group were right, or the baseline of another kind."""
    words = {"missing": "no answer", "ungraded": "not graded"}
    name = grade_name(truth["grade"])
    grade = words.get(name, name)
    if truth["by"]:
        grade = truth["by"] if truth["grade"] is None else f"{grade} by {truth['by']}"
    elif truth["verdict"] and name == "ungraded":
        return truth["verdict"] + _baseline(stream)
    if members := stream["members"] if stream else ():
        right = sum(member["right"] for member in members)
        return f"{grade}; {right} of {len(members)} in its group were right"
    return grade + _baseline(stream)


def _judged(judge: Facts) -> str:
    """Return how right the votes were that a turn gave."""
    counting = [vote for vote in judge["votes"] if vote["counts"]]
    sides = [(vote, *(grade is True for grade in vote["left_right"])) for vote in counting]
    decidable = [vote["truth"] for vote, a, b in sides if a != b and vote["truth"] is not None]
    if decidable:
        return f"{decidable.count(1)} of {counted(len(decidable), 'decidable vote')} right"
    agreeing = [vote["consensus"] for vote in counting if vote["consensus"] is not None]
    if agreeing:
        return f"{agreeing.count(1)} of {counted(len(agreeing), 'vote')} as the other judges"
    return counted(len(counting), "valid vote")


def _no_judge_signal(judge: Facts) -> str:
    """Return why votes earn nothing, where nothing was compared yet."""
    if not any(vote["counts"] for vote in judge["votes"]):
        return "no valid vote"
    valued = any(vote["value"].value is not None for vote in judge["votes"])
    return "no signal" if valued else "none of its votes has a value"


def _silent(streams: Mapping[str, Facts], names: Sequence[str]) -> str:
    """Return which streams had a value that became no signal, and why."""
    return "".join(
        f"; nothing from {name}: {streams[name]['advantage'].source.removeprefix('no signal: ')}"
        for name in names
        if name in streams
        and streams[name]["reward"].value is not None
        and streams[name]["advantage"].value is None
    )


def _sum(terms: Sequence[Term], total: float, *, none: str = "no signal") -> str:
    """Return the sum of the terms, "+0.28 = +0.50 (why) - 0.22 (why)", adding up as it is written.

    >>> _sum([Term(0.5, "a"), Term(-0.25, "b")], 0.25), _sum([Term(0.5, "a")], 0.5), _sum([], 0.0)
    ('+0.25 = +0.50 (a) - 0.25 (b)', '+0.50 (a)', '0 (no signal)')
    >>> _sum([Term(1 / 3, "a"), Term(1 / 3, "b")], 2 / 3)
    '+0.67 = +0.33 (a) + 0.33 (b) + 0.01 (rounding)'
    """
    if not terms:
        return f"0 ({none})"
    least = min(
        (abs(value) for value in (total, *(t.value for t in terms)) if abs(value) > NOTHING), default=1
    )
    enough = (digits for digits in range(FEWEST_DIGITS, MOST_DIGITS) if least * 10**digits >= 0.5)
    digits = next(enough, MOST_DIGITS)  # by which every value is told from zero
    parts = [(round(term.value * 10**digits), term.about) for term in terms]
    whole = round(total * 10**digits)
    if left := whole - sum(value for value, _ in parts):
        parts.append((left, "rounding" if abs(left) <= len(terms) else "what is stored does not explain it"))
    if len(parts) == 1:
        return f"{_written(whole, digits)} ({parts[0][1]})"
    first, *more = (f"{_written(value, digits)} ({about})" for value, about in parts)
    rest = "".join(f" {text[0]} {text[1:]}" for text in more)
    return f"{_written(whole, digits)} = {first}{rest}"


def _written(value: int, digits: int) -> str:
    """Return a number of units of its last digit as it is written, zero as positive.

    >>> _written(50, 2), _written(-1234, 3)
    ('+0.50', '-1.234')
    """
    whole, rest = divmod(abs(value), 10**digits)
    return f"{'-' if value < 0 else '+'}{whole}.{rest:0{digits}d}"
