"""docs/inspector.md names every field of the JSON of why, same, fixture and replays."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import inspector
from inspector.views.across import Across, Comparison, Held, TurnDifference, VoteDifference
from inspector.views.replays import DebateReplay, ReplayName, TurnChange
from inspector.views.reward_types import Number, Why

PAGE = (Path(inspector.__file__).parents[1] / "docs" / "inspector.md").read_text(encoding="utf-8")
NAMES = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("`why`, `same`, `fixture` and `replays` print JSON") :]))


@pytest.mark.parametrize(
    "kind",
    [
        *(Why, Number, Across, Held, Comparison, TurnDifference, VoteDifference),
        *(ReplayName, DebateReplay, TurnChange),
    ],
)
def test_the_page_names_every_field(kind):
    assert {field.name for field in fields(kind)} <= NAMES
