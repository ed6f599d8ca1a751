"""A policy that replies from a script, for tests, demonstrations and replays without a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from random import Random
from typing import TypeAlias, cast

from debate.prompting.escape import escape
from debate.prompting.reading import SeenEntry, SeenPrompt, read_prompt
from debate.prompting.rendering import SECTIONS
from debate.prompting.texts import PromptTexts, load_prompts
from debate.stops import end_of_stop
from debate.types import Completion, SampleRequest, StopReason, TurnId

Script: TypeAlias = (
    Callable[[SampleRequest], str] | Mapping[tuple[int, int], str] | Mapping[tuple[str, int, int], str]
)
"""A function of the request, or a table with keys (agent, round) or (debate, agent, round)."""

Chance: TypeAlias = float | Sequence[float] | Callable[[TurnId], float]
"""A probability: one for all agents, one per agent (cycled), or a function of the turn."""

END_TOKEN = 0x110000
"""The end token of character-level tokens: one more than the last code point."""


class ScriptedPolicy:
    """A policy that answers each request from a script, and like an engine stops at stop strings.

    If a table lacks the turn, the reply is ``default``; KeyError without a default. With ``tokens=True``
    every character is a token (its code point) with log-probability 0. The reply is then cut at
    ``max_tokens`` plus ``thinking_tokens``, and a reply that no stop string ended gets the end token.
    ``requests`` keeps the requests, in order. A reply that has already begun (``SampleRequest.begun``)
    continues with the script's reply to that request.

    >>> import asyncio
    >>> policy = ScriptedPolicy({(0, 0): "<solution>4</solution> and so on"}, tokens=True)
    >>> request = SampleRequest((), 1.0, 100, ("</solution>",), 7, "d", TurnId(0, 0))
    >>> asyncio.run(policy.sample(request)).text
    '<solution>4</solution>'
    """

    def __init__(
        self, script: Script, *, default: str | None = None, tokens: bool = False, version: int = 0
    ) -> None:
        self.version = version
        self.weights: object = None
        self.requests: list[SampleRequest] = []
        self._reply = script if callable(script) else partial(_look_up, script, default)
        self._tokens = tokens

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request from the script."""
        self.requests.append(request)
        text, stopped = _until_stop(self._reply(request), request)
        if not self._tokens:
            return Completion((), (), (), text, "stop", self.version)
        return _by_character(request, text, stopped, self.version)

    def written(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text."""
        return tuple(map(ord, text))

    def read(self, tokens: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """Return the text of tokens (T,) and their offsets (T,)."""
        return "".join(map(chr, filter(lambda token: token < END_TOKEN, tokens))), tuple(range(len(tokens)))

    def is_end(self, token: int) -> bool:
        """Return whether a token is the end token."""
        return token == END_TOKEN

    async def update(self, weights: object, version: int) -> None:
        """Store the weights and the version. The script does not change."""
        self.weights, self.version = weights, version


def _look_up(
    table: Mapping[tuple[int, int], str] | Mapping[tuple[str, int, int], str],
    default: str | None,
    request: SampleRequest,
) -> str:
    entries = cast("Mapping[tuple[str | int, ...], str]", table)
    turn = request.turn
    reply = entries.get((request.debate, *turn), entries.get(turn, default))
    if reply is None:
        raise KeyError(f"the script has no reply for agent {turn.agent} in round {turn.round} and no default")
    return reply


def _until_stop(text: str, request: SampleRequest) -> tuple[str, bool]:
    """Return the text up to the end of the first stop string after thinking, and whether there was one."""
    begin = max(0, text.find("</think>")) if request.thinking_tokens else 0
    end = end_of_stop(text, request.stop, begin)
    return text[:end], end is not None


def _by_character(request: SampleRequest, text: str, stopped: bool, version: int) -> Completion:
    prompt = tuple(ord(character) for message in request.messages for character in message.content)
    prompt += request.begun.tokens if request.begun else ()
    tokens = tuple(map(ord, text)) if stopped else (*map(ord, text), END_TOKEN)
    most = request.max_tokens + request.thinking_tokens
    reason: StopReason = "stop" if len(tokens) <= most else "length"
    tokens, text = tokens[:most], text[:most]
    offsets = tuple(range(len(tokens)))
    return Completion(prompt, tokens, (0.0,) * len(tokens), text, reason, version, offsets)


@dataclass(frozen=True, slots=True)
class Answers:
    """The right answer to one problem and some wrong answers, for scripted debaters."""

    right: str
    wrong: tuple[str, ...]


def scripted_debaters(
    answers: Mapping[str, Answers],
    *,
    solve: Chance = 0.5,
    judge: Chance = 0.8,
    malformed: Chance = 0.0,
    prompts: str | PromptTexts = "default",
    tokens: bool = False,
) -> ScriptedPolicy:
    """Return a policy whose agents solve and judge correctly with given probabilities.

    Its replies have the tags that a model should write.

    ``answers`` has the right and wrong answers by problem id. A solver writes the right answer with
    probability ``solve``, drawn anew in each round, and otherwise one of the wrong answers. A judge reads its
    own label and the solutions from its prompt, which must be rendered from ``prompts`` (name, path or
    texts). It compares every pair. If exactly one side is right, it prefers that side with probability
    ``judge``; otherwise a coin decides. With probability ``malformed`` a reply follows no format. All draws
    come from the request's seed, so a debate with the same seed gives the same replies.
    """
    texts = load_prompts(prompts) if isinstance(prompts, str) else prompts
    return ScriptedPolicy(
        partial(_reply, answers, texts, solve=solve, judge=judge, malformed=malformed), tokens=tokens
    )


def _reply(
    answers: Mapping[str, Answers],
    texts: PromptTexts,
    request: SampleRequest,
    *,
    solve: Chance,
    judge: Chance,
    malformed: Chance,
) -> str:
    """Return one reply. The problem's id follows the colon in the debate's name."""
    rng = Random(request.seed)
    problem_id = request.debate.partition(":")[2]
    if problem_id not in answers:
        raise KeyError(f"the script has no answers for problem {problem_id!r}")
    truth, seen = answers[problem_id], read_prompt(texts, request.messages)
    if rng.random() < _chance(malformed, request.turn):
        return f"I am not sure, but I would say {rng.choice((truth.right, *truth.wrong))}."
    critic = seen.task in ("critique", "critique_unranked")
    written = {
        "solution": _solution(truth, rng, _chance(solve, request.turn)),
        "evaluation": (_criticism if critic else _evaluation)(truth, seen),
        "comparison": _comparison(truth, seen, rng, _chance(judge, request.turn)),
    }
    return "\n".join(f"<{name}>{written[name]}</{name}>" for name in SECTIONS[seen.task])


def _chance(chance: Chance, turn: TurnId) -> float:
    if isinstance(chance, int | float):
        return chance
    return chance(turn) if callable(chance) else chance[turn.agent % len(chance)]


def _solution(truth: Answers, rng: Random, solve: float) -> str:
    answer = truth.right if rng.random() < solve or not truth.wrong else rng.choice(truth.wrong)
    return f"The answer is \\boxed{{{answer}}}"


def _is_right(truth: Answers, entry: SeenEntry) -> bool:
    return escape(f"\\boxed{{{truth.right}}}") in entry.solution


def _newest(seen: SeenPrompt) -> dict[str, SeenEntry]:
    """Return the newest entry of each agent except the author. Rounds are shown oldest first."""
    return {entry.handle: entry for entry in seen.entries if entry.handle != seen.handle}


def _evaluation(truth: Answers, seen: SeenPrompt) -> str:
    verdicts = {True: "the steps hold", False: "a step does not hold"}
    return " ".join(f"{handle}: {verdicts[_is_right(truth, e)]}." for handle, e in _newest(seen).items())


def _criticism(truth: Answers, seen: SeenPrompt) -> str:
    """Return a criticism of every wrong solution shown."""
    wrong = (handle for handle, entry in _newest(seen).items() if not _is_right(truth, entry))
    return " ".join(f"<target>{handle}</target>a step does not hold." for handle in wrong)


def _comparison(truth: Answers, seen: SeenPrompt, rng: Random, judge: float) -> str:
    lines: list[str] = []
    for (left, a), (right, b) in combinations(_newest(seen).items(), 2):
        left_is_right, right_is_right = _is_right(truth, a), _is_right(truth, b)
        decidable = left_is_right != right_is_right
        sees_it = rng.random() < (judge if decidable else 0.5)
        prefers_left = sees_it == left_is_right if decidable else sees_it
        lines.append(f"{left} {'>' if prefers_left else '<'} {right}: checked")
    return "\n" + "\n".join(lines) + "\n"
