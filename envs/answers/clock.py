"""Times of day: "4:51:06 p.m." is no product of letters; a half of the day that is not named is a unit."""

from __future__ import annotations

import re

_TIME = re.compile(
    r"(\d{1,2})(?::(\d\d))?(?::(\d\d))?(?: ?([ap])(\.?) ?m\.?| (noon|midnight))?", re.ASCII | re.IGNORECASE
)
_HALF_DAY = 12 * 3600


def same_time(answer: str, gold: str) -> bool | None:
    """Return whether two times of day in plain notation are the same; None where the gold answer is none.

    One of them must name the half of the day, by words or by an hour of 0 or above 12. A gold answer as "5am"
    may be letters of a formula: the answer must be a time as well.
    What is no time is not the same as one that names its half.

    >>> same_time("4:51 PM", "4:51 p.m."), same_time("4:51", "4:51 p.m."), same_time("4:51 am", "4:51 p.m.")
    (True, True, False)
    >>> same_time("16:51", "4:51 p.m."), same_time("5 pm", "5:00 p.m."), same_time("1:2", "1:2")
    (True, True, None)
    >>> same_time("0:00", "12:00 p.m."), same_time("24:00", "12:00 a.m."), same_time("16:51 am", "4:51 am")
    (False, True, False)
    >>> same_time("5:00", "5 pm"), same_time("5:00", "17:00")
    (True, None)
    >>> same_time("4:51 a.m. or 4:51 p.m.", "4:51 p.m."), same_time("2am + 3am", "5am")
    (False, None)
    """
    left, right = _TIME.fullmatch(answer), _TIME.fullmatch(gold)
    if not right or not (_named(right) or (right[2] and left and _named(left))):
        return None
    spelled_out = right[2] or right[5] or right[6] or " " in gold
    if not spelled_out and not (left and (left[2] or _named(left))):
        return None
    times = [_seconds(match) if match else None for match in (left, right)]
    if None in times:
        return False
    (a, a_known), (b, b_known) = (time for time in times if time)
    return a == b if a_known and b_known else a % _HALF_DAY == b % _HALF_DAY


def _named(time: re.Match[str]) -> bool:
    return bool(time[4] or time[6])


def _seconds(time: re.Match[str]) -> tuple[int, bool] | None:
    """Return the second of the day and whether its half is known; None for what no clock shows."""
    hour, minute, second = (int(part or 0) for part in time.group(1, 2, 3))
    if hour > 24 or minute > 59 or second > 59 or (hour == 24 and minute + second):
        return None
    half = time[4].lower() if time[4] else None
    if time[6]:
        if hour != 12 or minute or second:
            return None
        half = "a" if time[6].lower() == "midnight" else "p"
    if half is None:
        return (hour % 24 * 3600 + minute * 60 + second, hour == 0 or hour > 12)
    if (half == "a" and hour > 12) or (half == "p" and hour in (0, 24)):
        return None
    hour = hour % 12 + 12 if half == "p" else hour % 12
    return (hour * 3600 + minute * 60 + second, True)
