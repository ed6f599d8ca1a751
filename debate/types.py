"""The data types of a debate: problems, requests, replies, parsed turns and votes.

All are values and tuples, so a finished debate is a value too: it can be hashed by content, stored, replayed
and compared. Nothing here imports a heavy package.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, get_args

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from debate.config import DebateConfig, Seat
from debate.personas import Persona
from debate.tools import FENCE, RunStatus
from debate.values import Span, Value, blanked, whole_text

Kind: TypeAlias = Literal[
    "number", "expression", "choice", "text", "verbatim", "overlap", "instructions", "code", "rubric", "open"
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
Outcome: TypeAlias = Literal["left", "right", "tie"]
StopReason: TypeAlias = Literal["stop", "length"]
Role: TypeAlias = Literal["system", "user", "assistant"]
CallStatus: TypeAlias = RunStatus | Literal["refused"]
"""How a program of a reply ended. "refused": it did not run, because its turn had used up ``tool_calls``."""

SUMMARIZER = -1
COMPRESSOR = -2
WHOLE_RESPONSE: Final[frozenset[Kind]] = frozenset(("instructions", "overlap", "code", "rubric"))
"""Kinds whose answer is the whole solution, not a part extracted from it."""
WITHOUT_TRUTH: Final[frozenset[Kind]] = frozenset(("rubric", "open"))
"""Kinds without a gold answer. A rubric lets a verifier model score a response, but is not truth."""


class Shot(Value, frozen=True):
    """A solved example that a prompt shows before its problem.

    ``solution`` excludes the line with the final answer if its data set has one (GSM8K's ``####``).
    """

    question: str
    solution: str
    answer: str
    choices: tuple[str, ...] = ()


class Problem(Value, frozen=True):
    """One question. ``answer`` is None if nothing can be checked (kinds "rubric" and "open").

    For kinds "text" and "verbatim", ``answer`` has the accepted texts, one per line. For kind "instructions"
    it has constraints on the whole response (``envs.instructions``). For kind "overlap" it is a text that the
    whole response should resemble. For kind "code" it has the tests of a program (``envs.programs``).

    ``shots``: the examples that prompts of the first round show before the problem. ``rubric``: the criteria
    by which a verifier model scores a response, instead of the recipe's rubric. ``reference``: a good
    response shown to the verifier model.
    """

    id: str
    question: str
    answer: str | None = None
    source: str = ""
    level: str = ""
    kind: Kind = "expression"
    choices: tuple[str, ...] = ()
    shots: tuple[Shot, ...] | UnsetType = UNSET
    rubric: str | UnsetType = UNSET
    reference: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        for name in ("id", "question", "answer"):
            value: object = getattr(self, name)
            if not isinstance(value, str) and (name, value) != ("answer", None):
                raise ValueError(f"Problem.{name}: must be a text (got {value!r})")
        if self.kind not in KINDS:
            raise ValueError(f"Problem.kind: {self.kind!r} is none of {', '.join(KINDS)}")


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. ``content`` is plain text: no part of it is ever read as a control token."""

    role: Role
    content: str


class TurnId(NamedTuple):
    """Identifies a turn: agent in [0, N) and round in [0, R]; round R is the final ballot.

    In a request, agent ``SUMMARIZER`` asks for the summary of the rounds shown in the round, and agent
    ``COMPRESSOR - i`` for a shorter version of agent i's text in the round.
    """

    agent: int
    round: int


@dataclass(frozen=True, slots=True)
class Begun:
    """The beginning of a reply: its tokens (T,), if the engine returned any, and its text."""

    tokens: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """Everything a policy needs for one completion.

    ``seed`` alone determines the randomness. ``debate`` (any name that is unique within the call) and
    ``turn`` sort requests in an order that does not depend on timing. ``thinking_tokens`` limits the thinking
    of a thinking model; ``max_tokens`` and ``stop`` apply to the text after ``</think>``. ``top_p`` in (0, 1]
    and ``top_k`` (0: all) keep only the most likely tokens, as in ``DebateConfig``; they have no effect at
    temperature 0. ``seat``: which model is to answer (``debate.seats``).

    ``prefix``: the tokens at the start of the prompt, from an earlier prompt and its reply; the messages
    follow them. ``begun``: the reply so far, including thinking. The completion continues from there and
    contains only what follows; its prompt ends with the tokens of ``begun``.
    """

    messages: tuple[Message, ...]
    temperature: float
    max_tokens: int
    stop: tuple[str, ...]
    seed: int
    debate: str
    turn: TurnId
    thinking_tokens: int = 0
    top_p: float = 1.0
    top_k: int = 0
    prefix: tuple[int, ...] = ()
    begun: Begun | None = None
    seat: Seat = "learning"


class Call(Value, frozen=True):
    """A program that ran while its reply was generated, and its result.

    ``block``: the program and its output with their fences. ``code``: the program as written. ``output``: the
    escaped output within the reply. The running time is not kept, because it would differ from run to run.
    """

    block: Span
    code: Span
    output: Span
    status: CallStatus


class Completion(Value, frozen=True):
    """The reply of an engine. Token fields are empty if an engine does not return tokens.

    ``prompt_tokens`` (P,). ``tokens`` (T,) include the end token. ``logprobs`` (T,), in nats, are under the
    distribution that was sampled (temperature, top_p and top_k applied). ``offsets`` (T,): the index in
    ``text`` of the first character that each token touches, or ``len(text)`` for a token that adds no text,
    such as the end token.

    ``forced``: indices of ``tokens`` that were inserted instead of sampled, for instance when a thinking
    budget ran out. Their log-probability is 0 and they are not trained on. ``prompt_count`` and
    ``token_count``: token counts, if the engine reported them; see ``debate.policy.token_counts``. ``calls``:
    the programs of the reply that ran, in order, if ``debate.tools`` is on.
    """

    prompt_tokens: tuple[int, ...]
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    stop_reason: StopReason
    policy_version: int
    offsets: tuple[int, ...] = ()
    forced: tuple[int, ...] = ()
    prompt_count: int | None = None
    token_count: int | None = None
    calls: tuple[Call, ...] | UnsetType = UNSET

    @property
    def stated(self) -> str:
        r"""The text with each program that ran, and its output, replaced by line breaks of the same length.

        Sections, answers and votes are parsed from this text; their positions are also valid in ``text``. So
        the output of a program is never an answer or a vote: an agent must state these itself.

        >>> call = Call(Span(1, 4), Span(2, 2), Span(3, 3), "ok")
        >>> Completion((), (), (), "2xyz4", "stop", 0, calls=(call,)).stated
        '2\n\n\n4'
        """
        return blanked(self.text, (call.block for call in self.calls or ()))

    @property
    def unprinted(self) -> str:
        r"""The text with its programs but without their output, for answers that are programs.

        >>> text = "```python\n2\n```\n```output\n4\n```\nDone"
        >>> call = Call(Span(0, 32), Span(10, 12), Span(26, 28), "ok")
        >>> Completion((), (), (), text, "stop", 0, calls=(call,)).unprinted
        '```python\n2\n```\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\nDone'
        """
        printed = (Span(call.code.end, call.block.end) for call in self.calls or ())
        return blanked(self.text, printed, FENCE)

    def whole(self) -> Completion:
        """Return the completion with each lone surrogate replaced by U+FFFD.

        Positions in the text do not change.
        """
        text = whole_text(self.text)
        return self if text == self.text else replace(self, text=text)


class Policy(Protocol):
    """A policy that can generate replies in a debate."""

    version: int

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request."""
        ...

    async def update(self, weights: object, version: int) -> None:
        """Load new weights. Completions sampled afterwards carry ``version``.

        In training, ``weights`` is the learning model; a policy in the same process may use the same object.
        """
        ...


class FailureReason(StrEnum):
    """Why a part of a reply could not be parsed, or does not count."""

    MISSING_SECTION = "missing_section"  # the section is absent
    UNCLOSED_SECTION = "unclosed_section"  # the section was opened and never closed
    NOT_A_COMPARISON = "not_a_comparison"  # a line of the comparison that cannot be parsed as one
    UNKNOWN_HANDLE = "unknown_handle"  # a label that no agent has
    OWN_WORK = "own_work"  # the author compared its own work
    SAME_HANDLE = "same_handle"  # a label compared with itself
    NOT_DUE = "not_due"  # a vote cast when nothing was shown
    NOT_A_CRITICISM = "not_a_criticism"  # the target is not another agent, or nothing is said about it
    UNTAGGED = "untagged"  # a reply without the tags that were due; all of it is the solution


class ParseFailure(Value, frozen=True):
    """A missing or invalid part of a reply. ``detail`` names the section or quotes the offending line."""

    reason: FailureReason
    detail: str
    span: Span | None = None


class Ballot(Value, frozen=True):
    """One comparison as written: two handles in reading order. ``span`` is its line."""

    left: str
    right: str
    outcome: Outcome
    span: Span


class Criticism(Value, frozen=True):
    """A criticism of one solution. ``target`` is the handle of its author, ``span`` the text."""

    target: str
    span: Span


class ParsedTurn(Value, frozen=True):
    r"""The parsed content of one reply.

    ``solution``, ``evaluation`` and ``comparison`` are the insides of the last complete block of each kind
    (or of the last unfinished one). ``comparison_block`` includes the tags. ``thinking`` is the leading think
    block. ``answer`` is the last balanced ``\boxed{}`` of the solution, as written. For kinds whose answer is
    the whole response, it is the whole solution unless the reply's end cut it off. If a grader parses answers
    in another mode, it is what that mode finds in the solution. ``untagged``: True if the solution is a reply
    without tags. ``criticisms``: the criticisms of other agents' work, only in a turn of criticism.
    """

    solution: Span | None = None
    evaluation: Span | None = None
    comparison: Span | None = None
    answer: str | None = None
    ballots: tuple[Ballot, ...] = ()
    failures: tuple[ParseFailure, ...] = ()
    thinking: Span | None = None
    comparison_block: Span | None = None
    untagged: bool | UnsetType = UNSET
    criticisms: tuple[Criticism, ...] | UnsetType = UNSET

    @property
    def targets(self) -> tuple[str, ...] | None:
        """The handles of the agents that a turn of criticism criticises, each once. None for any other turn.

        >>> ParsedTurn(criticisms=(Criticism("K7", Span(0, 1)), Criticism("K7", Span(1, 2)))).targets
        ('K7',)
        """
        if self.criticisms is UNSET:
            return None
        return tuple(dict.fromkeys(one.target for one in self.criticisms))


class Turn(Value, frozen=True):
    """One reply in a debate. ``shown`` lists every turn that its prompt showed, in order, including its own.

    ``compared`` lists the turns that the author could compare: the newest shown solution of each agent (own
    work only with ``judge_own``). Fewer than two means that no comparison was due.

    ``cut`` counts the history texts that were shortened or left out to fit the context. If any was shortened,
    ``cut_length`` is the maximum characters of each text; -1 means that only the mark of the cut was left,
    and -2 that the mark also replaces texts that are shorter, missing or unreadable.

    ``ballot`` is True in rounds without solutions: every token of the turn is then the judge's, except in
    criticism. ``score``, in [0, 1]: how much of the solution is right. It is set if the solution was graded
    and its kind has partial scores (parts of it, or an overlap).
    """

    id: TurnId
    handle: str
    shown: tuple[TurnId, ...]
    completion: Completion
    parsed: ParsedTurn
    compared: tuple[TurnId, ...] = ()
    cut: int = 0
    ballot: bool = False
    cut_length: int | UnsetType = UNSET
    score: float | UnsetType = UNSET


class Summary(Value, frozen=True):
    """The text that a round's prompts showed instead of the history, if the debate has a summarizer.

    ``text`` is the summary, not yet escaped ("" if it was unreadable). ``completion`` is the whole reply.
    ``shown``, ``cut`` and ``cut_length`` describe the summarizer's prompt, as in ``Turn``. The summary is not
    trained on.
    """

    round: int
    shown: tuple[TurnId, ...]
    completion: Completion
    text: str
    cut: int = 0
    cut_length: int | UnsetType = UNSET


class Compression(Value, frozen=True):
    """The short version shown instead of a long solution: ``text``, not yet escaped.

    The turn keeps the whole solution.

    ``completions``: the model's replies, one per try, without token ids. ``failed``: no reply could be shown,
    so ``text`` is the cut solution. The replies are not trained on.
    """

    turn: TurnId
    text: str
    completions: tuple[Completion, ...] = ()
    failed: bool = False


class Vote(Value, frozen=True):
    """One comparison with its provenance: the exact turns that the judge was shown."""

    judge: TurnId
    left: TurnId
    right: TurnId
    outcome: Outcome
    span: Span | None = None


class Swapped(Value, frozen=True):
    """A judge's second ballot on the same solutions, shown in reverse order. Its votes do not count.

    ``turn``: the first ballot. ``compared``: the turns in the order shown this time. ``completion`` has no
    token ids.
    """

    turn: TurnId
    compared: tuple[TurnId, ...]
    completion: Completion
    votes: tuple[Vote, ...]


class Debate(Value, frozen=True):
    """A finished debate: N personas, turns sorted by (round, agent), and every vote as it was cast.

    ``summaries``: one for each round that showed one, in order, if the debate had a summarizer.
    ``rounds_saved``: the number of rounds that were not held because all agents agreed; the protocol's
    ``num_rounds`` counts only the rounds held. ``compressions``: the short versions of long solutions.
    ``swapped``: the second ballots, if judges were asked again. ``print`` shows a short transcript.
    """

    problem: Problem
    personas: tuple[Persona, ...]
    turns: tuple[Turn, ...]
    votes: tuple[Vote, ...]
    seed: int
    policy_version: int
    protocol: DebateConfig
    summaries: tuple[Summary, ...] = ()
    rounds_saved: int | UnsetType = UNSET
    compressions: tuple[Compression, ...] | UnsetType = UNSET
    swapped: tuple[Swapped, ...] | UnsetType = UNSET

    def __repr__(self) -> str:
        turns, votes = len(self.turns), len(self.votes)
        return f"<Debate on {self.problem.id!r}: {len(self.personas)} agents, {turns} turns, {votes} votes>"

    def __str__(self) -> str:
        from debate.show import transcript  # it needs these types

        return transcript(self)

    def _repr_html_(self) -> str:
        from debate.show import html_of

        return html_of(self)

    def auxiliary(self) -> list[Completion]:
        """Return the replies outside of turns: summaries, attempts at compressions, and second ballots."""
        tries = (reply for one in self.compressions or () for reply in one.completions)
        again = (one.completion for one in self.swapped or ())
        return [*(summary.completion for summary in self.summaries), *tries, *again]

    def turn(self, turn_id: TurnId) -> Turn:
        """Return the turn with this id. KeyError if there is none."""
        for turn in self.turns:
            if turn.id == turn_id:
                return turn
        raise KeyError(turn_id)
