"""One problem across the steps of a run and its evaluated checkpoints: which debates there are of it."""

from __future__ import annotations

from dataclasses import dataclass

from debate.types import TurnId
from debate_rl.inspector.views.debate import debate_view
from debate_rl.inspector.views.evaluated import debates_on, evaluations, read_evaluated
from rewards import Truth
from transcripts import Record, RunStore, TranscriptError


@dataclass(frozen=True, slots=True)
class ProblemDebate:
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
    held: tuple[ProblemDebate, ...]
    total: int
    notes: tuple[str, ...] = ()


def across(
    store: RunStore, problem_id: str, *, steps: tuple[int, int | None] | None = None, limit: int = 50
) -> Across:
    """Return the debates of a problem, at most ``limit`` from training and as many from evaluations.

    ``steps``: the first and the last step to look at. TranscriptError where there is no debate of it.
    """
    notes: list[str] = []
    first, last = steps or (0, None)
    trained, total = _trained(store, problem_id, first, last, limit, notes)
    evaluated = [
        (_of_problem(evaluation.step, f"{evaluation.name}:{id}", evaluation.name, record), record)
        for evaluation in evaluations(store.run, notes)
        if first <= evaluation.step and (last is None or evaluation.step <= last)
        for id, record in debates_on(evaluation, problem_id, notes)
    ]
    debates = sorted([*trained, *evaluated[:limit]], key=lambda debate: debate[0].step)
    if not debates:
        within = "" if steps is None else " in these steps"
        note = f"; {notes[0]}" if notes else ""
        raise TranscriptError(f"{store.run}: no debate of problem {problem_id!r}{within}{note}")
    problem = debates[0][1].debate.problem
    held, total = tuple(debate for debate, _ in debates), total + len(evaluated)
    return Across(problem.id, problem.question, problem.answer, held, total, tuple(notes))


def _trained(
    store: RunStore, problem: str, first: int, last: int | None, limit: int, notes: list[str]
) -> tuple[list[tuple[ProblemDebate, Record]], int]:
    """Return debates of training, and how many there are."""
    quoted = problem.replace('"', '""')
    filter = f'problem:"{quoted}" step:{first}..{"" if last is None else last}'
    debates: list[tuple[ProblemDebate, Record]] = []
    for row in store.debates(filter, limit=limit):
        try:
            record = store.debate(row.id)
        except TranscriptError as error:
            notes.append(str(error))
        else:
            debates.append((_of_problem(row.step, row.id, "", record), record))
    return debates, store.count(filter)


def _of_problem(step: int, ref: str, evaluation: str, record: Record) -> ProblemDebate:
    view = debate_view(ref, record)
    answers = {turn.id: turn.parsed.answer for turn in record.debate.turns}
    return ProblemDebate(
        ref=ref,
        evaluation=evaluation,
        step=step,
        personas=tuple(persona.name for persona in view.personas),
        answers=tuple(
            tuple(answers.get(TurnId(agent, round_)) for round_ in range(view.rounds))
            for agent in range(view.agents)
        ),
        grades=record.correct,
        winner=view.winner,
    )


def read(store: RunStore, ref: str, *, tokens: bool = False) -> Record:
    """Return the debate that a ``ProblemDebate.ref`` names; TranscriptError where there is none.

    ``tokens``: with the token arrays, where it is one of training.
    """
    name, colon, id = ref.rpartition(":")
    if not colon:
        return store.debate(ref, tokens=tokens)
    known = {evaluation.name: evaluation for evaluation in evaluations(store.run, [])}
    if name not in known:
        names = ", ".join(known) or "none"
        raise TranscriptError(f"{store.run}: no evaluation {name!r}; there are {names}")
    return read_evaluated(known[name], id)
