"""Shorten long solutions with a model before the other agents read them. The answer is kept as written.

A prompt contains the solutions of all other agents, so a few long solutions can fill it. The shortened text
is shown if it gives the same answer. If no attempt succeeds, the solution is cut, in the same way as when a
prompt does not fit the context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from debate.concurrency import together
from debate.early_stop import Agreed
from debate.parsing import last_boxed, parse_turn
from debate.parsing.tags import without_private
from debate.policy import opens_thinking, token_counts
from debate.prompting.escape import clean
from debate.prompting.fitting import context_budget, shorten
from debate.prompting.prompt import compression_prompt
from debate.prompting.seating import Seating
from debate.prompting.shown import PublicTurn, public_summary, public_turn, rounds_held
from debate.seeds import derive_seed
from debate.types import (
    COMPRESSOR,
    WHOLE_RESPONSE,
    Completion,
    Compression,
    Message,
    Policy,
    SampleRequest,
    Turn,
    TurnId,
)

TRIES = 3


@dataclass(frozen=True, slots=True)
class Compressor:
    """Shortens the solutions of a debate.

    ``agreed`` decides whether two turns give the same answer.
    """

    policy: Policy
    agreed: Agreed
    seating: Seating
    seed: int
    name: str

    async def compress(self, turns: Sequence[Turn]) -> tuple[Compression, ...]:
        """Return the text shown instead of each long solution of a round, in the order of the turns."""
        long = [turn for turn in turns if self._is_long(turn)]
        tried: dict[TurnId, tuple[Completion, ...]] = {turn.id: () for turn in long}
        texts: dict[TurnId, str] = {}
        for number in range(TRIES):
            waiting = [turn for turn in long if turn.id not in texts and self._fits(turn)]
            replies = await together([self._ask(turn, number) for turn in waiting])
            for turn, reply in zip(waiting, replies, strict=True):
                tried[turn.id] += (without_tokens(reply),)
                text = self._read(turn, reply)
                if text is not None:
                    texts[turn.id] = text
        return tuple(
            Compression(turn.id, texts[turn.id], tried[turn.id])
            if turn.id in texts
            else Compression(turn.id, self._cut(turn), tried[turn.id], failed=True)
            for turn in long
        )

    def _is_long(self, turn: Turn) -> bool:
        """Return whether others will read this turn's solution and it is longer than ``compress.over``."""
        config, problem = self.seating.config, self.seating.problem
        read = turn.id.round + 1 < rounds_held(config) and config.history_rounds != 0
        over = config.compress.over
        if over is None or not read or turn.ballot or problem.kind in WHOLE_RESPONSE:
            return False
        return self._public(turn).solution is not None and solution_tokens(turn) > over

    def _public(self, turn: Turn) -> PublicTurn:
        return public_turn(turn, strip=self.seating.texts.strip)

    def _messages(self, turn: Turn) -> tuple[Message, ...]:
        return compression_prompt(self.seating, self._public(turn).solution or "")

    def _fits(self, turn: Turn) -> bool:
        wanted = self.seating.config.compress.max_tokens
        return context_budget(self.policy, self.seating.config, max_tokens=wanted).fits(self._messages(turn))

    async def _ask(self, turn: Turn, number: int) -> Completion:
        config = self.seating.config
        request = SampleRequest(
            messages=self._messages(turn),
            temperature=config.compress.temperature,
            max_tokens=config.compress.max_tokens,
            stop=config.stop,
            seed=derive_seed(self.seed, "compress", turn.id.round, turn.id.agent, number),
            debate=self.name,
            turn=TurnId(COMPRESSOR - turn.id.agent, turn.id.round),
            thinking_tokens=config.compress_thinking,
            top_p=config.top_p,
            top_k=config.top_k,
        )
        return (await self.policy.sample(request)).whole()

    def _read(self, turn: Turn, reply: Completion) -> str | None:
        """Return the shortened solution from a reply, with its box.

        None if the reply has no complete, shorter text, or if that text gives another answer.
        """
        public = self._public(turn)
        text = _written(reply.text, in_thinking=opens_thinking(self.policy, self._messages(turn)))
        if text.count("\\boxed") > 1:
            return None
        if text and public.answer is not None and "\\boxed" not in text:
            text += f"\n\\boxed{{{public.answer}}}"
        whole = reply.stop_reason == "stop" and 0 < len(text) < len(public.solution or "")
        same = last_boxed(text) == public.answer and self._same_grade(turn, text)
        return text if whole and same else None

    def _same_grade(self, turn: Turn, text: str) -> bool:
        """Return whether the text gives the same answer as the turn; True for a turn without an answer."""
        problem, reply = self.seating.problem, f"<solution>{text}</solution>"
        parsed = parse_turn(reply, handles=(), own=None, due=False)
        short = replace(turn, completion=replace(turn.completion, text=reply), parsed=parsed)
        return not self.agreed(problem, (turn,)) or self.agreed(problem, (turn, short))

    def _cut(self, turn: Turn) -> str:
        """Return the solution cut to about ``compress.over`` tokens."""
        public, over = self._public(turn), self.seating.config.compress.over or 0
        solution = public.solution or ""
        length = len(solution) * over // solution_tokens(turn)
        return shorten(solution, length, answer=public.answer, mark=self.seating.texts.cut)


def solution_tokens(turn: Turn) -> int:
    """Return about how many tokens a solution has.

    If the reply has token offsets, count the tokens that overlap the solution. Otherwise, take the solution's
    fraction of the reply's token count. Without a token count, assume three characters per token.
    """
    span, reply = turn.parsed.solution, turn.completion
    if span is None:
        return 0
    if reply.tokens and len(reply.offsets) == len(reply.tokens):
        ends = (*reply.offsets[1:], len(reply.text))
        return sum(
            start < span.end and span.start < end for start, end in zip(reply.offsets, ends, strict=True)
        )
    whole = token_counts(reply)[1] or -(-len(reply.text) // 3)
    return -(-whole * (span.end - span.start) // len(reply.text))


def _written(reply: str, *, in_thinking: bool) -> str:
    """Return the text of a reply after its thinking.

    If the reply has solution tags, return the text inside them.
    """
    solution = parse_turn(reply, handles=(), own=None, due=False, in_thinking=in_thinking).solution
    if solution is not None:
        return without_private(clean(solution.of(reply))).strip()
    return public_summary(reply, in_thinking=in_thinking)


def without_tokens(reply: Completion) -> Completion:
    """Return a reply with token counts instead of tokens, for a reply that is not trained on."""
    prompt, written = token_counts(reply)
    bare = Completion((), (), (), reply.text, reply.stop_reason, reply.policy_version)
    return replace(bare, prompt_count=prompt, token_count=written)
