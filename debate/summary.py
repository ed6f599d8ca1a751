"""The optional summary of what a round shows: one for all agents, in the place of the history.

The summariser sees what the agents would: the problem and public, anonymised texts. It has no seat, and
nothing that it writes is trained.
"""

from __future__ import annotations

from debate.escape import clean, without_private
from debate.fitting import room_for_prompt
from debate.history import Past, view_to_summarize
from debate.optional import opens_thinking
from debate.parsing.sections import find_sections
from debate.seeds import derive_seed
from debate.showing import rounds_shown
from debate.table import Table
from debate.types import SUMMARIZER, Policy, SampleRequest, Summary, TurnId


async def summarize(
    table: Table, past: Past, round_: int, policy: Policy, *, seed: int, name: str
) -> Summary | None:
    """Return the summary of what this round shows; None where it shows nothing, or none is wanted."""
    config, wanted = table.config, table.config.summary
    if not wanted.enabled or not rounds_shown(round_, config.history_rounds):
        return None
    room = room_for_prompt(policy, config, max_tokens=wanted.max_tokens)
    seen = view_to_summarize(table, past, round_, room)
    reply = await policy.sample(
        SampleRequest(
            messages=seen.messages,
            temperature=wanted.temperature,
            max_tokens=wanted.max_tokens,
            stop=config.stop,
            seed=derive_seed(seed, "summary", round_),
            debate=name,
            turn=TurnId(SUMMARIZER, round_),
            thinking_tokens=config.thinking_tokens,
        )
    )
    text = read_summary(reply.text, in_thinking=opens_thinking(policy, seen.messages))
    return Summary(round_, seen.shown, reply, text, seen.cut)


def read_summary(text: str, *, in_thinking: bool = False) -> str:
    """Return what may be shown of a summariser's reply: no thinking and no comparison block.

    >>> read_summary("<think>K7?</think> Q2 finds 4. <comparison>K7 > Q2</comparison>")
    'Q2 finds 4.'
    """
    thinking = find_sections(text, in_thinking=in_thinking).thinking
    return without_private(clean(text[thinking.end if thinking else 0 :])).strip()
