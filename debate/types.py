"""The nouns of a debate: what goes in, what an agent says, what was read from it, and who voted for whom.

Values and tuples only, so a finished debate is a value itself: it can be hashed by content, stored,
replayed and compared. Nothing here imports a heavy package.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from debate.config import DebateConfig, Seat
from debate.personas import Persona
from debate.tools import FENCE, RunStatus
from debate.values import Span, Value, blanked, whole_text

Kind: TypeAlias = Literal[
    "number", "expression", "choice", "text", "verbatim", "overlap", "instructions", "code", "rubric", "open"
]
Outcome: TypeAlias = Literal["left", "right", "tie"]
StopReason: TypeAlias = Literal["stop", "length"]
Role: TypeAlias = Literal["system", "user", "assistant"]
CallStatus: TypeAlias = RunStatus | Literal["refused"]
"""How a program of a reply ended; one that was "refused" did not run: its turn had run as many as it may."""

SUMMARIZER = -1
COMPRESSOR = -2
WHOLE_RESPONSE: Final[frozenset[Kind]] = frozenset(("instructions", "overlap", "code", "rubric"))
"""Kinds whose answer is the whole solution, and nothing found in it."""
WITHOUT_TRUTH: Final[frozenset[Kind]] = frozenset(("rubric", "open"))
"""Kinds without a gold answer: a rubric gives a verifier model something to score by, and no truth."""


class Shot(Value, frozen=True):
    """A solved example that a prompt shows before its problem.

    ``solution`` is without the line of the final answer where its data set has one (GSM8K's ``####``).
    """

    question: str
    solution: str
    answer: str
    choices: tuple[str, ...] = ()


class Problem(Value, frozen=True):
    """One question. ``answer`` is None when nothing can be checked (kinds "rubric" and "open").

    Kinds "text" and "verbatim" have the accepted texts as ``answer``, one a line; kind "instructions" has
    constraints on the whole response (``envs.instructions``), kind "overlap" a text that it is to be near,
    and then the response is the answer; kind "code" has the tests of a program (``envs.programs``).
    ``shots``: the examples that prompts of the first round show before it.
    ``rubric``: what a verifier model scores a response by, instead of the recipe's rubric;
    ``reference``: a good response that it is shown.
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


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. ``content`` is plain text: no part of it is ever read as a control token."""

    role: Role
    content: str


class TurnId(NamedTuple):
    """Which turn: agent in [0, N) and round in [0, R]; round R is the final ballot.

    In a request, agent ``SUMMARIZER`` asks for the summary of what the round shows, and agent
    ``COMPRESSOR - i`` for a shorter text of what agent i wrote in the round.
    """

    agent: int
    round: int


@dataclass(frozen=True, slots=True)
class Begun:
    """The beginning of a reply: its tokens (T,), where the engine gave any, and its text."""

    tokens: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """Everything a policy needs for one completion.

    ``seed`` alone decides the randomness; ``debate`` (any unique name of the debate within the call)
    and ``turn`` sort requests in an order that does not depend on timing. A thinking model gets
    ``thinking_tokens`` for its thinking; ``max_tokens`` and ``stop`` are about what follows ``</think>``.
    ``prefix``: the tokens that the prompt begins with, those of an earlier prompt and of the reply to it; the
    messages come after them. ``top_p`` in (0, 1] and ``top_k`` (0: all) keep the likely tokens alone, as in
    ``DebateConfig``; at temperature 0 they change nothing.
    ``begun``: what the reply has said so far, its thinking among it. The completion continues from there and
    holds what comes after it alone; its prompt ends with these tokens.
    ``seat``: who is to answer (``debate.seats``).
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
    """A program of a reply that ran at its place, and its result.

    ``block``: the program and its output with their fences; ``code``: the program as written; ``output``:
    what the reply has of its output, escaped. How long it took is not kept: it would differ from run to run.
    """

    block: Span
    code: Span
    output: Span
    status: CallStatus


class Completion(Value, frozen=True):
    """What the engine answered. Token fields are empty if an engine gives no tokens.

    ``prompt_tokens`` (P,), ``tokens`` (T,) with the end token, ``logprobs`` (T,) in nats of the
    distribution that was sampled (temperature, top_p and top_k applied), ``offsets`` (T,): the index in
    ``text`` of the first character each token touches (``len(text)`` for tokens that add no text, such as
    the end token).
    ``forced``: indices of ``tokens`` that were written and not sampled, as where a thinking budget ran out;
    their log-probability is 0 and they are not trained on. ``prompt_count`` and ``token_count``: how many
    tokens the engine reported, where it reported counts; see ``debate.policy.token_counts``.
    ``calls``: the programs of the reply that ran, in order, where the agents may run any (``debate.tools``).
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
        r"""The text without programs: each that ran, with its output, is replaced by line breaks.

        Sections, answers and votes are read in it, at their places in ``text``. So nothing that a program
        prints is an answer or a vote: an agent states these itself.

        >>> call = Call(Span(1, 4), Span(2, 2), Span(3, 3), "ok")
        >>> Completion((), (), (), "2xyz4", "stop", 0, calls=(call,)).stated
        '2\n\n\n4'
        """
        return blanked(self.text, (call.block for call in self.calls or ()))

    @property
    def unprinted(self) -> str:
        r"""The text with its programs and without what they printed: where an answer is a program.

        >>> text = "```python\n2\n```\n```output\n4\n```\nDone"
        >>> call = Call(Span(0, 32), Span(10, 12), Span(26, 28), "ok")
        >>> Completion((), (), (), text, "stop", 0, calls=(call,)).unprinted
        '```python\n2\n```\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\nDone'
        """
        printed = (Span(call.code.end, call.block.end) for call in self.calls or ())
        return blanked(self.text, printed, FENCE)

    def whole(self) -> Completion:
        """Return the completion with U+FFFD for each half of a character; no place in the text moves."""
        text = whole_text(self.text)
        return self if text == self.text else replace(self, text=text)


class Policy(Protocol):
    """Anything that can speak in a debate."""

    version: int

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request."""
        ...

    async def update(self, weights: object, version: int) -> None:
        """Take new weights; completions sampled afterwards carry ``version``.

        In training they are the model that learns, which a policy in the same process may hold itself.
        """
        ...


class FailureReason(StrEnum):
    """Why something that was due could not be read."""

    MISSING_SECTION = "missing_section"  # the section is not there at all
    UNCLOSED_SECTION = "unclosed_section"  # the section was opened and never closed
    NOT_A_COMPARISON = "not_a_comparison"  # a comparison line that is not a comparison
    UNKNOWN_HANDLE = "unknown_handle"  # a label that no agent has
    OWN_WORK = "own_work"  # the author compared its own work
    SAME_HANDLE = "same_handle"  # a label compared with itself
    NOT_DUE = "not_due"  # a vote cast when nothing was shown
    NOT_A_CRITICISM = "not_a_criticism"  # a target that is no other agent, or of which nothing is said
    UNTAGGED = "untagged"  # a reply without the tags that were due, read as the solution


class ParseFailure(Value, frozen=True):
    """Something a turn should have held and did not; ``detail`` names the section or the offending line."""

    reason: FailureReason
    detail: str
    span: Span | None = None


class Ballot(Value, frozen=True):
    """One comparison as written: two handles in reading order. ``span`` is the line it was read from."""

    left: str
    right: str
    outcome: Outcome
    span: Span


class Criticism(Value, frozen=True):
    """What a turn of criticism says of one solution. ``target`` is its author's handle, ``span`` the text."""

    target: str
    span: Span


class ParsedTurn(Value, frozen=True):
    r"""What could be read from one reply.

    ``solution``, ``evaluation`` and ``comparison`` are the insides of the last complete block of each
    kind (or of the last unfinished one); ``comparison_block`` includes the tags, ``thinking`` is the
    leading think block. ``answer`` is the last balanced ``\boxed{}`` of the solution, as written; in a debate
    on instructions, all of a solution that the reply's end did not cut off. Where a grader reads it in
    another way, it is what the grader's mode finds in the solution. ``untagged``: True if the solution is
    a reply without tags. ``criticisms``: of a turn of criticism alone, those that name another agent's work.
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
        """The handles of those whom a turn of criticism criticises, each once; None of any other turn.

        >>> ParsedTurn(criticisms=(Criticism("K7", Span(0, 1)), Criticism("K7", Span(1, 2)))).targets
        ('K7',)
        """
        if self.criticisms is UNSET:
            return None
        return tuple(dict.fromkeys(one.target for one in self.criticisms))


class Turn(Value, frozen=True):
    """One reply in a debate. ``shown`` lists every turn its prompt showed, own ones included, in order.

    ``compared`` lists the turns that the author could compare: the newest shown solution of
    each agent (own work only with ``judge_own``). Fewer than two means that no comparison was due.
    ``cut`` counts the history texts that were shortened or left out to fit the context; where any was
    shortened, ``cut_length`` is the characters that each may have, -1 where nothing but the mark of the cut
    was left, -2 where it also stands for texts that are shorter, missing or unreadable. ``ballot`` is True in
    rounds without solutions: every token of the turn is then the judge's, except for criticism. ``score``, in
    [0, 1]: how much of the solution is right, where the problem's kind measures that (parts of it, or an
    overlap) and it was graded.
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
    """What the prompts of a round showed instead of its history, if the debate has a summariser.

    ``text`` is the summary, not yet escaped ("" when nothing could be read); ``completion`` the whole reply.
    ``shown``, ``cut`` and ``cut_length`` are about the summariser's prompt, as in ``Turn``. Nobody learns
    from it.
    """

    round: int
    shown: tuple[TurnId, ...]
    completion: Completion
    text: str
    cut: int = 0
    cut_length: int | UnsetType = UNSET


class Compression(Value, frozen=True):
    """What was shown instead of a long solution: ``text``, not yet escaped; its turn keeps all of it.

    ``completions``: what the model wrote, one for each try, without token ids. ``failed``: none of it could
    be shown, and the text is the solution, cut. Nobody learns from it.
    """

    turn: TurnId
    text: str
    completions: tuple[Completion, ...] = ()
    failed: bool = False


class Vote(Value, frozen=True):
    """One comparison with its provenance: the exact turns the judge was shown."""

    judge: TurnId
    left: TurnId
    right: TurnId
    outcome: Outcome
    span: Span | None = None


class Swapped(Value, frozen=True):
    """A judge's second ballot on the same solutions, shown in the other order; its votes count for nobody.

    ``turn``: its first. ``compared``: in the order shown now. ``completion``: without token ids.
    """

    turn: TurnId
    compared: tuple[TurnId, ...]
    completion: Completion
    votes: tuple[Vote, ...]


class Debate(Value, frozen=True):
    """A finished debate: N personas, turns sorted by (round, agent), and every vote as it was cast.

    ``summaries`` has one for each round that showed any, in order, if the debate had a summariser.
    ``rounds_saved``: the rounds that were not held because all agents gave the same answer; the protocol's
    ``num_rounds`` are those that were. ``compressions``: of solutions that others read shortened.
    ``swapped``: the second ballots, where judges were asked again.
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

    def auxiliary(self) -> list[Completion]:
        """Return what was written outside of turns: summaries, tries of a compression, second ballots."""
        tries = (reply for one in self.compressions or () for reply in one.completions)
        again = (one.completion for one in self.swapped or ())
        return [*(summary.completion for summary in self.summaries), *tries, *again]

    def turn(self, turn_id: TurnId) -> Turn:
        """Return the turn with this id; KeyError when there is none."""
        for turn in self.turns:
            if turn.id == turn_id:
                return turn
        raise KeyError(turn_id)
