"""What an arm of a frontier learns from: votes, majorities, labels, and controls, by name.

A name with a number after it, as in "truth=0.125", is of a family of signals. ``README.md`` says what
each one is, and ``docs/rewards.md`` whose idea it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from debate.settings import did_you_mean
from debate_rl.config import Control, SharedControl

UNLABELLED = ("rewards.labels=0.0",)
VOTES = (*UNLABELLED, "rewards.truth_weight=0.0")
PSEUDO = (*UNLABELLED, "rewards.truth_weight=1.0")
ALONE = ("debate.num_rounds=1", "debate.final_ballot=false")
"""One round, nobody judges."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal: what it changes of a recipe, and what the generator learns from, in words.

    ``alone``: one round of solutions without judges, as many more as spend the tokens of the debates.
    ``control``, ``share``: what is done to votes, as ``train.control``.
    """

    name: str
    overrides: tuple[str, ...]
    words: str
    alone: bool = False
    control: Control | SharedControl = "none"
    share: float = 0.0


def _controlled(name: str, control: Control | SharedControl, words: str, share: float = 0.0) -> Signal:
    own = (f"train.control.{control}={share}" if share else f"train.control={control}",)
    return Signal(name, (*VOTES, *own), words, control=control, share=share)


PLAIN: Mapping[str, Signal] = {
    one.name: one
    for one in (
        Signal("votes", VOTES, "votes alone"),
        Signal(
            "ttrl",
            (*PSEUDO, "rewards.pseudo=majority", *ALONE),
            "the majority of the group's answers; one round, as many more solutions as spend the tokens",
            alone=True,
        ),
        Signal(
            "ttrl_debate",
            (*PSEUDO, "rewards.pseudo=majority"),
            "the majority of the group's answers of the turn's own round",
        ),
        Signal(
            "last_majority",
            (*PSEUDO, "rewards.pseudo=last_majority"),
            "the majority of the last round, for all rounds",
        ),
        Signal("voted", (*PSEUDO, "rewards.pseudo=voted"), "the answer that most votes of the group favour"),
        _controlled("shuffled", "shuffled_votes", "the votes dealt anew"),
        _controlled(
            "own_answer", "own_answer", "votes for whoever has the judge's own answer, without judging"
        ),
        Signal(
            "random",
            (*PSEUDO, "train.control=random_reward"),
            "a coin for each solution",
            control="random_reward",
        ),
    )
}
SHARED: Mapping[str, str] = {
    "truth": "truth on this share of the problems, nothing on the others",
    "routed": "truth on this share of the problems, votes where it is silent",
    "flipped": "votes, each turned with this probability",
    "shared": "votes, for this share of the pairs of answers all of them turned",
}
"""Families of signals with a share after their name, and what they are."""
_COUNT = re.compile("[1-9][0-9]{,8}")
LABELS = "labels"
"""The family with a number of problems after its name: only these are trained on, epoch after epoch."""


def signal_named(name: str) -> Signal:
    """Return the signal of a name; ValueError for an unknown name or an impossible number.

    >>> signal_named("labels=12").overrides
    ('env.limit=12', 'rewards.labels=1.0', 'rewards.truth_weight=1.0')
    >>> signal_named("truth=0.125").overrides
    ('rewards.labels=0.125', 'rewards.truth_weight=1.0')
    >>> signal_named("flipped=0.2").share
    0.2
    """
    family, equals, text = name.partition("=")
    if not equals and name in PLAIN:
        return PLAIN[name]
    if family == LABELS and equals:
        own = (f"env.limit={_count(name, text)}", "rewards.labels=1.0", "rewards.truth_weight=1.0")
        return Signal(name, own, "truth on a few problems, which are drawn repeatedly")
    if family not in SHARED or not equals:
        known = [*PLAIN, *(f"{one}=SHARE" for one in SHARED), f"{LABELS}=NUMBER"]
        raise ValueError(f"{name}: no such signal; {did_you_mean(name, known, 'valid: ' + ', '.join(known))}")
    share = _share(name, text)
    words = SHARED[family]
    if family in ("flipped", "shared"):
        return _controlled(name, "flipped_votes" if family == "flipped" else "shared_errors", words, share)
    labels = (f"rewards.labels={share}",)
    own = ("rewards.peer_weight=routed",) if family == "routed" else ("rewards.truth_weight=1.0",)
    return Signal(name, (*labels, *own), words)


def has_all_labels(name: str) -> bool:
    """Return whether a signal is truth on every problem that it trains on: a point of the curve of labels.

    >>> [has_all_labels(name) for name in ("labels=12", "truth=1", "truth=0.5", "votes")]
    [True, True, False, False]
    """
    family, _, text = name.partition("=")
    return family == LABELS or (family == "truth" and _share(name, text) == 1)


def _count(name: str, text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise ValueError(
            f"{name}: the number of problems behind {LABELS}= is 1 or more, written without a zero "
            f"before it and in nine digits at most (got {text!r})"
        )
    return int(text)


def _share(name: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise ValueError(f"{name}: the share after a signal is above 0 and at most 1 (got {text!r})")
    return share


def signals_named(names: Sequence[str]) -> list[Signal]:
    """Return the signals of these names, each once; ValueError as ``signal_named``."""
    return [signal_named(name) for name in dict.fromkeys(names)]
