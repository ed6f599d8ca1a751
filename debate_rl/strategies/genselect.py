"""GenSelect: the model reads the solutions in one list, or a knock-out of lists, and names the best."""

from __future__ import annotations

from debate_rl.strategies.selecting import check_selection, knock_out, longest_list
from debate_rl.strategies.types import Answered, Asked


async def genselect(asked: Asked) -> Answered:
    """Return the answer of the solution selected from ``asked.samples`` of them [arXiv 2504.16891]."""
    check_selection(asked.judged_by.protocol)
    return await knock_out(asked, longest_list(asked.judged_by.protocol))
