"""The kinds of finding: what is looked for, the least cases and size, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from debate_rl.reports.document import Tone

Said = tuple[str, Tone]
"""What a difference is, in words, and how it is to be taken."""
MORE_TRUTH = "read votes that went wrong; a higher rewards.truth_weight makes praise count less"
UNSEEN_FAULT = (
    "read such votes; give judges the check that they leave out (personas, prompts), or more truth "
    "(rewards.truth_weight)"
)
BOTH_ORDERS = 'let judges see pairs in both orders: debate.order = "per_viewer"'


@dataclass(frozen=True, slots=True)
class Kind:
    """One thing to look for: a difference from 0, of which ``up`` and ``down`` say what it is.

    ``cases`` and ``problems`` are the least there must be, on each side of a comparison; ``size`` is the
    least that matters, in the unit of the difference. ``advice`` is what to do about the bad one.
    """

    name: str
    what: str
    size: float
    up: Said
    down: Said
    advice: str
    cases: int = 30
    problems: int = 10


_BETTER: Said = "Judges got better", "good"
_WORSE: Said = "Judges got worse", "bad"
KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "judge/held_out",
            "judge accuracy on held-out problems, last evaluation less first",
            0.03,
            _BETTER,
            _WORSE,
            MORE_TRUTH,
        ),
        Kind(
            "judge/change",
            "judge accuracy, last third of the steps less first",
            0.05,
            _BETTER,
            _WORSE,
            MORE_TRUTH,
        ),
        Kind(
            "judge/coin",
            "judge accuracy less 1/2",
            0.05,
            ("Judges tell right from wrong better than a coin", "good"),
            ("A coin would judge better", "bad"),
            MORE_TRUTH,
        ),
        Kind(
            "judge/blind_fault",
            "votes right on the kind of wrong solution on which fewest are, less on all others; not over 1/2",
            0.1,
            ("", ""),
            ("Judges do not see one kind of fault", "bad"),
            UNSEEN_FAULT,
        ),
        Kind(
            "judge/weak_fault",
            "the same, where votes on that kind are right more often than not",
            0.2,
            ("", ""),
            ("Judges miss one kind of fault more than others", "warn"),
            UNSEEN_FAULT,
        ),
        Kind(
            "learned/held_out",
            "accuracy of one agent alone on held-out problems, last evaluation less first",
            0.01,
            ("It learned", "good"),
            ("It got worse", "bad"),
            "take the best checkpoint, and read what is wrong late",
            problems=30,
        ),
        Kind(
            "learned/training",
            "accuracy on the problems trained on, last third of the steps less first (cases: steps)",
            0.02,
            ("Accuracy rose in training", "good"),
            ("Accuracy fell in training", "bad"),
            "read what is wrong late",
            cases=12,
            problems=0,
        ),
        Kind(
            "winner/lift",
            "winner right, less the accuracy of its round",
            0.02,
            ("Votes choose better than a draw", "good"),
            ("Votes choose worse than a draw", "bad"),
            MORE_TRUTH,
        ),
        Kind(
            "flip/net",
            "steps from wrong to right less those from right to wrong, of an agent from a round to the next",
            0.02,
            ("Debate makes answers better", "good"),
            ("Debate makes answers worse", "warn"),
            "read debates in which a right answer was given up",
        ),
        Kind(
            "bias/position",
            "votes for the solution shown first less 1/2, both right or both wrong",
            0.05,
            ("Judges prefer the solution shown first", "warn"),
            ("Judges prefer the solution shown second", "warn"),
            BOTH_ORDERS,
        ),
        Kind(
            "bias/length",
            "votes for the longer solution less 1/2, both right or both wrong",
            0.05,
            ("Judges prefer the longer solution", "warn"),
            ("Judges prefer the shorter solution", "warn"),
            "watch the length of replies; a higher rewards.truth_weight makes praise count less",
        ),
        Kind(
            "bias/self_preference",
            "votes for one's own wrong work less those for wrong work of others",
            0.1,
            ("Judges prefer their own work", "warn"),
            ("Judges prefer the work of others", "warn"),
            "leave own work out: debate.judge_own = false",
        ),
        Kind(
            "cascade/first_listed",
            "answers taken over from the agent shown first, less what a random other would give",
            0.1,
            ("Agents take over what is shown first", "warn"),
            ("Agents take over what is not shown first", "warn"),
            BOTH_ORDERS,
        ),
        Kind(
            "collusion/gap",
            "what the winner's praise gained over the run, less what its truth gained",
            0.1,
            ("Praise grew without truth", "bad"),
            ("Truth grew more than praise", ""),
            MORE_TRUTH,
        ),
    )
}
"""By name, in the order in which findings are told."""
