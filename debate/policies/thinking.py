"""Thinking with a budget of its own: it is sampled first, and ended by force when the budget is spent.

The tokens that end it by force were not sampled: ``Completion.forced`` names them, and nobody learns from
them. No stop string of the answer is looked for before ``</think>``.
"""

# pyright: standard, reportMissingTypeStubs=false
# torch, transformers and tokenizers are only partly typed: strict rules stop at their borders.

from __future__ import annotations

from dataclasses import dataclass

from debate.policies.sampler import Draw, Drawn
from debate.seeds import derive_seed
from debate.types import SampleRequest

THINK_END = "</think>"
OPENING, CLOSING = "<think>\n", f"\n{THINK_END}\n\n"


@dataclass(frozen=True, slots=True)
class Thought:
    """The thinking of one reply: tokens and log-probabilities (T,); the last ``forced`` were not sampled.

    ``over``: the reply ended within its thinking.
    """

    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    forced: int = 0
    over: bool = False

    @property
    def forced_places(self) -> tuple[int, ...]:
        """The places of the forced tokens.

        >>> Thought((7, 8, 9), (-1.0, 0.0, 0.0), forced=2).forced_places
        (1, 2)
        """
        return tuple(range(len(self.tokens) - self.forced, len(self.tokens)))


def thinking_draw(
    request: SampleRequest, prompt: tuple[int, ...], *, room: int, closing: tuple[int, ...]
) -> Draw:
    """Return what to sample for the thinking; its budget and ``room`` hold its forced end as well."""
    budget = min(request.thinking_tokens, room)
    if budget <= len(closing):
        raise ValueError(
            f"debate {request.debate}, turn {request.turn}: {budget} tokens are too few to think, since "
            f"ending it takes {len(closing)}; raise debate.thinking_tokens or context_tokens"
        )
    return Draw(
        prompt=prompt,
        max_tokens=budget - len(closing),
        temperature=request.temperature,
        seed=derive_seed(request.seed, "thinking"),
        stop=(THINK_END,),
        thinking=False,
    )


def thought_of(drawn: Drawn, *, closing: tuple[int, ...], ends: frozenset[int]) -> Thought:
    """Return the thinking with its end: its own, that of the whole reply, or a forced one."""
    if drawn.stop_reason == "stop":
        return Thought(drawn.tokens, drawn.logprobs, over=drawn.tokens[-1] in ends)
    return Thought(drawn.tokens + closing, drawn.logprobs + (0.0,) * len(closing), forced=len(closing))
