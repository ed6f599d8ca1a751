"""docs/inspector.md names every field of the JSON of why, same, fixture and replays."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import debate_rl
from debate_rl.inspector.views.across import Across, ProblemDebate
from debate_rl.inspector.views.compared import Comparison, TurnDifference, VoteDifference
from debate_rl.inspector.views.replays import DebateReplay, ReplayName, TurnChange
from debate_rl.inspector.views.reward_types import Number, Why

PAGE = (Path(debate_rl.__file__).parents[1] / "docs" / "inspector.md").read_text(encoding="utf-8")
NAMES = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("`why`, `same`, `fixture` and `replays` print JSON") :]))


@pytest.mark.parametrize(
    "kind",
    [
        *(Why, Number, Across, ProblemDebate, Comparison, TurnDifference, VoteDifference),
        *(ReplayName, DebateReplay, TurnChange),
    ],
)
def test_the_page_names_every_field(kind):
    assert {field.name for field in fields(kind)} <= NAMES
