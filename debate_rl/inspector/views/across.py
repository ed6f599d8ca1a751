"""The debates on one problem in all steps and evaluations of a run, and a comparison of two debates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeAlias

from debate.files import LARGEST, read_json
from debate.types import Debate, Turn, TurnId
from debate_rl.evaluation.folder import BEGINNINGS, IDENTITY
from debate_rl.formatting import percent
from debate_rl.inspector.blocks import Block, Line, Section, Span, Text, grade
from debate_rl.inspector.lists import PROBLEM_DEBATES, table_of
from debate_rl.inspector.views.debate import debate_view, grade_name
from debate_rl.replay.branches import FOLDER, read_branch
from debate_rl.runs.checkpoint import WARM_START, step_of
from debate_rl.runs.provenance import checksum
from rewards import Truth
from rewards.truth import grade_of
from rewards.votes import Pair, ballot_box, pair_of, valid_votes, verdict
from transcripts import Record, RunStore, TranscriptError
from transcripts.codec import from_line
from transcripts.files import reading, shard_paths, shard_step
from transcripts.record import check_record, named


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation. ``step``: the number of training steps of its weights, 0 for a warm start."""

    name: str
    step: int
    folder: Path


@dataclass(frozen=True, slots=True)
class EvaluationPart:
    """A part of an evaluation, such as debates or direct solutions. Its ``folder`` opens like a run."""

    name: str
    debates: int
    folder: Path


@dataclass(frozen=True, slots=True)
class ProblemDebate:
    """One debate of the problem. ``ref``, for ``read``: its id in the run, or EVALUATION:SEED.INDEX.

    ``evaluation``: its folder in RUN/evaluations, or "". ``step``: the number of training steps of the
    weights. ``answers``, ``grades``: (N, R). ``winner``: the winner's turn, or None without votes.
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
    """The debates on a problem by step. ``total``: also those not shown. ``notes``: reading errors."""

    problem: str
    question: str
    gold: str | None
    held: tuple[ProblemDebate, ...]
    total: int
    notes: tuple[str, ...] = ()


def across(store: RunStore, problem_id: str, *, limit: int = 50) -> Across:
    """Return the debates on a problem: up to ``limit`` from training, and up to ``limit`` from evaluations.

    TranscriptError if there are none.
    """
    notes: list[str] = []
    quoted = problem_id.replace('"', '""')
    filter = f'problem:"{quoted}"'
    debates: list[tuple[ProblemDebate, Record]] = []
    for row in store.debates(filter, limit=limit):
        try:
            record = store.debate(row.id)
        except TranscriptError as error:
            notes.append(str(error))
        else:
            debates.append((_of_problem(row.step, row.id, "", record), record))
    evaluated = [
        (_of_problem(evaluation.step, f"{evaluation.name}:{id}", evaluation.name, record), record)
        for evaluation in evaluations(store.run, notes)
        for id, record in _debates_on(evaluation, problem_id, notes)
    ]
    debates = sorted([*debates, *evaluated[:limit]], key=lambda debate: debate[0].step)
    if not debates:
        note = f"; {notes[0]}" if notes else ""
        raise TranscriptError(f"{store.run}: no debate on problem {problem_id!r}{note}")
    problem, total = debates[0][1].debate.problem, store.count(filter) + len(evaluated)
    held = tuple(debate for debate, _ in debates)
    return Across(problem.id, problem.question, problem.answer, held, total, tuple(notes))


def _of_problem(step: int, ref: str, evaluation: str, record: Record) -> ProblemDebate:
    view = debate_view(ref, record)
    answers = {turn.id: turn.parsed.answer for turn in record.debate.turns}
    agents, rounds = range(view.agents), range(view.rounds)
    by_agent = tuple(tuple(answers.get(TurnId(agent, round_)) for round_ in rounds) for agent in agents)
    personas = tuple(persona.name for persona in view.personas)
    return ProblemDebate(ref, evaluation, step, personas, by_agent, record.correct, view.winner)


def read(store: RunStore, ref: str, *, tokens: bool = False) -> Record:
    """Return the debate of a ``ProblemDebate.ref`` or a branch (branches:ID). TranscriptError without one.

    ``tokens``: include the token arrays of a debate from training, or of a branch.
    """
    name, colon, id = ref.rpartition(":")
    if not colon:
        return store.debate(ref, tokens=tokens)
    if name == FOLDER:
        return read_branch(store.run, id, tokens=tokens)
    known = {evaluation.name: evaluation for evaluation in evaluations(store.run, [])}
    if name not in known:
        names = ", ".join(known) or "none"
        raise TranscriptError(f"{store.run}: no evaluation {name!r}; there are {names}")
    notes: list[str] = []
    folder = known[name].folder
    for seed, number, line in _lines(known[name], notes):
        if f"{seed}.{number}" == id:
            try:
                return _record(line)
            except ValueError as error:
                raise TranscriptError(f"{folder}: debate {id}: {error}") from error
    raise TranscriptError(notes[0] if notes else f"{folder}: no debate {id!r}")


def evaluations(run: Path, notes: list[str]) -> list[Evaluation]:
    """Return a run's evaluations, ordered by training steps. ``notes`` receives errors."""
    try:
        folders = sorted(child for child in (run / "evaluations").iterdir() if (child / IDENTITY).is_file())
    except OSError:
        return []
    try:
        manifests = [path / "manifest.json" for path in (run / WARM_START).iterdir()]
        warm_starts = {checksum(path, LARGEST) for path in manifests if path.is_file()}
    except OSError:
        warm_starts = set[str]()
    found = [Evaluation(folder.name, _step(folder, warm_starts, notes), folder) for folder in folders]
    return sorted(found, key=lambda evaluation: evaluation.step)


def _step(folder: Path, warm_starts: set[str], notes: list[str]) -> int:
    """Return the number of training steps of the weights, or 0 for start weights or if unknown."""
    try:
        if read_json(folder / IDENTITY)["of"].get("weights") in warm_starts:
            return 0
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        notes.append(f"{folder / IDENTITY}: is damaged; its step is read from the folder's name")
    weights, _, _ = folder.name.rpartition("-")
    try:
        return 0 if weights in BEGINNINGS else step_of(Path(weights))
    except ValueError:
        notes.append(f"{folder}: its name has no step; listed as step 0")
        return 0


def evaluation_parts(evaluation: Evaluation, notes: list[str]) -> list[EvaluationPart]:
    """Return the non-empty parts of an evaluation by name. ``notes`` receives errors."""
    found: list[EvaluationPart] = []
    try:
        for folder in sorted(child for child in evaluation.folder.iterdir() if child.is_dir()):
            count, shards = 0, shard_paths(folder)
            for shard in shards:
                with reading(shard) as file:
                    count += sum(line.endswith(b"\n") for _, line in file.lines())
            found += [EvaluationPart(folder.name, count, folder)] if shards else []
    except (OSError, TranscriptError) as error:
        notes.append(f"{evaluation.folder}: cannot be read: {error}")
    return found


def _debates_on(evaluation: Evaluation, problem: str, notes: list[str]) -> Iterator[tuple[str, Record]]:
    """Yield the debates on a problem, with ids SEED.INDEX. ``notes`` receives damaged lines."""
    word = json.dumps(problem).encode("ascii")
    for seed, index, line in _lines(evaluation, notes):
        if word in line:
            try:
                record = _record(line)
            except ValueError as error:
                notes.append(f"{evaluation.folder}: debate {seed}.{index}: {error}")
                continue
            if record.debate.problem.id == problem:
                yield f"{seed}.{index}", record


def _lines(evaluation: Evaluation, notes: list[str]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the seed, the index and the bytes of each complete line; none for evaluations of strategies."""
    folder = evaluation.folder / "debates"
    if not folder.is_dir():
        return
    try:
        for shard in shard_paths(folder):
            with reading(shard) as file:
                for index, (_, line) in enumerate(file.lines()):
                    if line.endswith(b"\n"):
                        yield shard_step(shard) or 0, index, line
    except (OSError, TranscriptError) as error:
        notes.append(f"{folder}: cannot be read: {error}")


def _record(line: bytes) -> Record:
    record = from_line(line)
    check_record(record)
    return record


def across_blocks(result: Across) -> list[Block]:
    """Return a problem and its debates, ordered by step."""
    gold = Span("unknown", "faint") if result.gold is None else Span(result.gold, "answer")
    return [
        Line((Span(f"problem {result.problem}", "strong"),)),
        Text(result.question, typeset=True),
        Line(("gold answer: ", gold)),
        *(Line(f"note: {note}", "notice") for note in result.notes),
        table_of(PROBLEM_DEBATES, result.held, name="held", row_name="held-row"),
    ]


MOST_CHARACTERS, MOST_WORDS, MOST_VOTES = 40_000, 4000, 100
"""Maximum length of the compared part of a text, without its common beginning and end."""
_WORD = re.compile(r"\S+\s*|\s+")
Mark: TypeAlias = Literal[" ", "-", "+"]
_SIDES = {1: "first", -1: "second", 0: "tie"}


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Words of both texts (" "), of only the first ("-"), or of only the second ("+")."""

    mark: Mark
    text: str


@dataclass(frozen=True, slots=True)
class TurnDifference:
    """One turn in both debates. ``pieces``: both texts, compared word by word.

    ``cut``: the middle was too long to compare and counts as different. ``alike``: the fraction of common
    words. ``answers``, ``grades``: before and after, None if a debate lacks the turn.
    """

    turn: TurnId
    personas: tuple[str | None, str | None]
    pieces: tuple[TextPiece, ...]
    cut: bool
    alike: float
    answers: tuple[str | None, str | None]
    grades: tuple[Truth, Truth]


@dataclass(frozen=True, slots=True)
class VoteDifference:
    """A pair on which a judge's votes differ. Outcomes: "first", "second", "tie", or None without a vote."""

    judge: TurnId
    first: TurnId
    second: TurnId
    before: str | None
    after: str | None

    @property
    def kind(self) -> str:
        """The change: new, gone, reversed, or changed (to or from a tie)."""
        if None in (self.before, self.after):
            return "new" if self.before is None else "gone"
        return "changed" if "tie" in (self.before, self.after) else "reversed"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences of two debates: turns and votes. ``notes``: warnings about the comparison."""

    before: str
    after: str
    turns: tuple[TurnDifference, ...]
    votes: tuple[VoteDifference, ...]
    same_votes: int
    notes: tuple[str, ...] = ()
    rounds: int | None = None

    def persona(self, agent: int) -> str:
        """Return the persona of an agent, or both personas if the debates differ."""
        names = next((turn.personas for turn in self.turns if turn.turn.agent == agent), ())
        return " → ".join(dict.fromkeys(name or "no turn" for name in names)) or f"agent {agent}"

    def spelled(self, turn: TurnId) -> str:
        """Return a turn by persona and round, with its address if two agents share the persona."""
        agents = {difference.turn.agent for difference in self.turns}
        name = self.persona(turn.agent)
        address = f" (turn {named(turn)})" if sum(self.persona(agent) == name for agent in agents) > 1 else ""
        is_ballot = self.rounds is not None and turn.round >= self.rounds
        return f"{name}, {'final ballot' if is_ballot else f'round {turn.round}'}{address}"


def compare(before: Record, after: Record, names: tuple[str, str] = ("before", "after")) -> Comparison:
    """Return the differences between two debates, by agent. Only valid votes are compared.

    ValueError for a record that is not a debate (``check_record``).
    """
    check_record(before)
    check_record(after)
    ids = {turn.id for record in (before, after) for turn in record.debate.turns}
    turns = sorted(ids, key=lambda turn: (turn.round, turn.agent))
    old, new = _outcomes(before), _outcomes(after)
    keys = sorted({*old, *new}, key=lambda key: (key[0].round, key))
    votes = [VoteDifference(key[0], *key[1], old.get(key), new.get(key)) for key in keys]
    differ = tuple(vote for vote in votes if vote.before != vote.after)
    both = tuple(_turn(before, after, turn) for turn in turns)
    notes = tuple(_notes(before.debate, after.debate))
    rounds = max(record.debate.protocol.num_rounds for record in (before, after))
    return Comparison(*names, both, differ, len(votes) - len(differ), notes, rounds)


def _outcomes(record: Record) -> dict[tuple[TurnId, Pair], str]:
    votes = valid_votes(ballot_box(record.debate))
    return {(vote.judge, pair_of(vote)): _SIDES[verdict(vote)] for vote in votes}


def _notes(before: Debate, after: Debate) -> Iterator[str]:
    if before.problem.id != after.problem.id:
        yield "the debates are on different problems"
    elif before.problem != after.problem:
        yield "the problem differs between the debates: its question, gold answer or kind was changed"
    if before.protocol != after.protocol:
        yield "the debates have different protocols"
    pairs = zip(before.personas, after.personas, strict=False)
    other = [f"{agent}: {a.name}, then {b.name}" for agent, (a, b) in enumerate(pairs) if a.name != b.name]
    if other:
        yield f"agents have different personas ({'; '.join(other)})"


def _turn(before: Record, after: Record, turn: TurnId) -> TurnDifference:
    a, b = ({one.id: one for one in record.debate.turns}.get(turn) for record in (before, after))
    pieces, cut = differing(a.completion.text if a else "", b.completion.text if b else "")
    counts = dict.fromkeys(" -+", 0)
    for piece in pieces:
        counts[piece.mark] += len(_WORD.findall(piece.text))
    both = 2 * counts[" "]

    def persona(record: Record, held: Turn | None) -> str | None:
        return record.debate.personas[turn.agent].name if held else None

    personas = persona(before, a), persona(after, b)
    alike = both / (both + counts["-"] + counts["+"]) if pieces else 1.0
    answers = a.parsed.answer if a else None, b.parsed.answer if b else None
    grades = grade_of(turn, before.correct), grade_of(turn, after.correct)
    return TurnDifference(turn, personas, pieces, cut, alike, answers, grades)


def differing(before: str, after: str) -> tuple[tuple[TextPiece, ...], bool]:
    """Return two texts as pieces, and whether the middle was too long to compare.

    >>> [(piece.mark, piece.text) for piece in differing("so it is 4", "so it was 4")[0]]
    [(' ', 'so it '), ('-', 'is '), ('+', 'was '), (' ', '4')]
    """
    a, b = _WORD.findall(before), _WORD.findall(after)
    start = _common(a, b)
    end = _common(a[start:][::-1], b[start:][::-1])
    middle = a[start : len(a) - end], b[start : len(b) - end]
    cut = any(len(words) > MOST_WORDS or sum(map(len, words)) > MOST_CHARACTERS for words in middle)
    changes: list[tuple[Mark, list[str]]] = [(" ", a[:start])]
    matcher = SequenceMatcher(None, *(((), ()) if cut else middle))
    opcodes = [("replace", 0, len(middle[0]), 0, len(middle[1]))] if cut else matcher.get_opcodes()
    for kind, i, j, k, m in opcodes:
        if kind == "equal":
            changes.append((" ", middle[0][i:j]))
        else:
            changes.append(("-", middle[0][i:j]))
            changes.append(("+", middle[1][k:m]))
    changes.append((" ", a[len(a) - end :]))
    joined: list[TextPiece] = []
    for mark, group in groupby((one for one in changes if one[1]), key=lambda change: change[0]):
        joined.append(TextPiece(mark, "".join("".join(words) for _, words in group)))  # type: ignore[arg-type]
    return tuple(joined), cut


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    pairs = enumerate(zip(a, b, strict=False))
    return next((index for index, (word, other) in pairs if word != other), min(len(a), len(b)))


STYLES = {" ": "same", "-": "gone", "+": "new"}


def comparison_blocks(both: Comparison, *, changed: bool = False) -> list[Block]:
    """Return the differences between two debates: votes, answers, and texts word by word.

    ``changed``: leave out turns with the same text.
    """
    blocks: list[Block] = [Line(note, "notice") for note in both.notes]
    ends = (Span(f"[-only {both.before}-]", "wrong"), "  ", Span(f"{{+only {both.after}+}}", "right"))
    blocks.append(Line(ends))
    votes: list[Block] = []
    for vote in both.votes[:MOST_VOTES]:
        first, second, judge = map(both.spelled, (vote.first, vote.second, vote.judge))
        said = {"tie": f"{first} = {second}", "first": f"{first} > {second}", "second": f"{second} > {first}"}
        was, now = (said.get(side or "", "no vote") for side in (vote.before, vote.after))
        votes.append(Line(f"vote of {judge} ({vote.kind}): {was}  →  {now}"))
    blocks.append(Section(f"votes: {both.same_votes} equal, {len(both.votes)} different", votes))
    turns = [turn for turn in both.turns if not changed or turn.alike < 1]
    return [*blocks, *(_difference(both, turn) for turn in turns)]


def _difference(both: Comparison, turn: TurnDifference) -> Section:
    alike, where = f": {percent(turn.alike, 0)} of the words equal", f" (turn {named(turn.turn)})"
    blocks: list[Block] = []
    if any(turn.answers) or any(one is not None for one in turn.grades):
        answers = (Span("none" if answer is None else answer, "answer") for answer in turn.answers)
        sides = [(a, " ", grade(grade_name(b))) for a, b in zip(answers, turn.grades, strict=True)]
        same = " (unchanged)" if sides[0] == sides[1] else ""
        blocks.append(Line(("answer: ", *sides[0], *(() if same else (" → ", *sides[1])), same)))
    if turn.cut:
        blocks.append(Line("too long to compare in full: only beginning and end are compared", "notice"))
    blocks.append(Text([Span(piece.text, STYLES[piece.mark]) for piece in turn.pieces], "words", "diff"))
    name = both.spelled(turn.turn).removesuffix(where)
    return Section((name, Span(where + alike, "faint")), blocks, name="difference")
