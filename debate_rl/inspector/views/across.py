"""One problem across the steps of a run and its evaluated checkpoints: which debates there are of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from debate.types import TurnId
from debate_rl.inspector.views.checked import open_debate
from debate_rl.inspector.views.compared import Comparison, TextPiece, TurnDifference, VoteDifference, compare
from debate_rl.inspector.views.debate import debate_view
from debate_rl.inspector.views.evaluated import Evaluated, evaluations, found_in, read_evaluated
from rewards import Truth
from transcripts import Record, RunStore, TranscriptError

__all__ = [
    "Across",
    "Comparison",
    "Held",
    "TextPiece",
    "TurnDifference",
    "VoteDifference",
    "across",
    "compare",
    "read",
]


@dataclass(frozen=True, slots=True)
class Held:
    """One debate of the problem.

    ``ref`` opens it again (``read``): the id of a debate of the run, or EVALUATION:SEED.INDEX, and then
    ``evaluation`` is the name of the folder in RUN/evaluations. ``step``: how many steps the weights had
    learnt from, which in training is the step. ``answers`` and ``grades`` are (N, R). ``winner``: the
    winner's turn, None without votes.
    """

    ref: str
    evaluation: str
    step: int
    personas: tuple[str, ...]
    answers: tuple[tuple[str | None, ...], ...]
    grades: tuple[tuple[Truth, ...], ...] | None
    winner: TurnId | None


@dataclass(frozen=True, slots=True)
class Across:
    """The debates of a problem, in the order of steps; ``total``: how many there are, shown or not.

    ``notes``: what could not be read.
    """

    problem: str
    question: str
    gold: str | None
    held: tuple[Held, ...]
    total: int
    notes: tuple[str, ...] = ()


def across(
    store: RunStore, problem_id: str, *, steps: tuple[int, int | None] | None = None, limit: int = 50
) -> Across:
    """Return the debates of a problem, at most ``limit`` from training and as many from evaluations.

    ``steps``: the first and the last step to look at. TranscriptError where there is no debate of it.
    """
    notes: list[str] = []
    trained, count = _trained(store, problem_id, steps, limit, notes)
    asked = [one for one in evaluations(store.run, notes) if _within(one.step, steps)]
    evaluated = [
        (one.step, f"{one.name}:{id}", one.name, record)
        for one in asked
        for id, record in found_in(one, problem_id, notes)
    ]
    count += len(evaluated)
    found = sorted([*trained, *evaluated[:limit]], key=lambda one: one[0])
    held = tuple(_held(step, ref, name, record) for step, ref, name, record in found)
    if not held:
        within = "" if steps is None else " in these steps"
        told = f"; {notes[0]}" if notes else ""
        raise TranscriptError(f"{store.run}: no debate of problem {problem_id!r}{within}{told}")
    problem = found[0][3].debate.problem
    return Across(problem.id, problem.question, problem.answer, held, count, tuple(notes))


def _within(step: int, steps: tuple[int, int | None] | None) -> bool:
    return steps is None or (steps[0] <= step and (steps[1] is None or step <= steps[1]))


def _trained(
    store: RunStore, problem: str, steps: tuple[int, int | None] | None, limit: int, notes: list[str]
) -> tuple[list[tuple[int, str, str, Record]], int]:
    """Return debates of training with their steps and ids, and how many there are."""
    first, last = steps or (0, None)
    quoted = problem.replace('"', '""')
    filter = f'problem:"{quoted}" step:{first}..{"" if last is None else last}'
    found: list[tuple[int, str, str, Record]] = []
    for row in store.debates(filter, limit=limit):
        try:
            found.append((row.step, row.id, "", open_debate(store, row.id)))
        except TranscriptError as error:
            notes.append(str(error))
    return found, store.count(filter)


def _held(step: int, ref: str, evaluation: str, record: Record) -> Held:
    protocol = record.debate.protocol
    answers = {turn.id: turn.parsed.answer for turn in record.debate.turns}
    return Held(
        ref=ref,
        evaluation=evaluation,
        step=step,
        personas=tuple(persona.name for persona in record.debate.personas),
        answers=tuple(
            tuple(answers.get(TurnId(agent, round_)) for round_ in range(protocol.num_rounds))
            for agent in range(protocol.num_agents)
        ),
        grades=record.correct,
        winner=debate_view(ref, record).winner,
    )


def read(store: RunStore, ref: str) -> Record:
    """Return the debate that a ``Held.ref`` names; TranscriptError where there is none."""
    name, colon, id = ref.rpartition(":")
    if not colon:
        return open_debate(store, ref)
    return read_evaluated(_named(evaluations(store.run, []), name, store), id)


def _named(known: Sequence[Evaluated], name: str, store: RunStore) -> Evaluated:
    for one in known:
        if one.name == name:
            return one
    told = ", ".join(one.name for one in known) or "none"
    raise TranscriptError(f"{store.run}: no evaluation {name!r}; there are {told}")
