"""The table of a reader that is known: one that copies what stands last in the reasoning."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from debate.types import Completion, Problem
from debate_rl.config import Config
from experiments.bottleneck import measuring
from experiments.bottleneck.measuring import Solution, corrupted, measure

CONFIG = Config.model_validate({"env": {"kind": "pair_sum"}, "model": {"tiny": {}}})
SUMS = [Problem(f"p{n}", "?", str(n), kind="number") for n in (7, 8)]


class Copier:
    """Writes the last word of the reasoning; finds the gold answer likely by the length of the reasoning."""

    def __init__(self, *_: Any, **settings: Any) -> None:
        assert settings["chat"] is False

    def sample_all(self, requests: Any) -> list[Completion]:
        texts = [request.messages[0].content for request in requests]
        assert all(text.endswith("Answer:") and "?" not in text for text in texts)
        said = [(text.removesuffix("\nAnswer:").split() or [""])[-1] for text in texts]
        return [Completion((), (), (), f" {word}\nmore", "stop", 0) for word in said]


@pytest.fixture
def copier(monkeypatch: pytest.MonkeyPatch) -> None:
    def row(self: Any, problem: Problem, text: str) -> Any:
        return SimpleNamespace(input_ids=text) if len(text) < 50 else None

    monkeypatch.setattr(measuring, "LocalPolicy", Copier)
    monkeypatch.setattr(measuring, "compute_type", lambda *_: None)
    monkeypatch.setattr(measuring.AnswerRows, "row", row)
    monkeypatch.setattr(measuring.AnswerRows, "context", 1000)
    monkeypatch.setattr(
        measuring, "mean_logprobs", lambda _, rows, **__: [-1.0 / (1 + len(row.input_ids)) for row in rows]
    )


@pytest.mark.usefixtures("copier")
def test_accuracy_is_of_the_readers_answers_and_drops_are_paired_with_the_whole_reasoning():
    solutions = [
        Solution(SUMS[0], "so 7", False),
        Solution(SUMS[0], "so 9", True),
        Solution(SUMS[1], "so 8", True),
        Solution(SUMS[1], "so 8", None),
        Solution(SUMS[1], "x" * 60, True),
    ]
    found = measure(solutions, None, None, CONFIG)
    whole, *others = found.lines
    assert (whole.corruption, whole.accuracy.value, whole.accuracy.clusters) == ("", 0.75, 2)
    assert whole.logprob.value == pytest.approx(-1 / 5)
    assert found.left_out == 1
    assert found.own is not None
    assert found.own.value == pytest.approx(2 / 3)
    assert len(others) == 5 * 3
    gone = next(line for line in others if (line.corruption, line.share) == ("delete", 1.0))
    assert (gone.accuracy.value, gone.accuracy_drop and gone.accuracy_drop.value) == (0.0, -0.75)
    assert gone.logprob_drop is not None
    assert gone.logprob_drop.value == pytest.approx(-1.0 + 1 / 5)
    start = next(line for line in others if (line.corruption, line.share) == ("truncate the start", 0.5))
    assert (start.accuracy_drop and start.accuracy_drop.value) == 0.0  # the last word is still there


@pytest.mark.usefixtures("copier")
def test_without_a_solution_that_fits_there_is_no_table():
    with pytest.raises(ValueError, match="no solution of a problem with a gold answer fits"):
        measure([Solution(SUMS[0], "x" * 60, True)], None, None, CONFIG)


def test_a_corruption_is_drawn_by_seed_problem_and_index():
    one = Solution(SUMS[0], "so 1234567890 and 1234567890", True)
    way = ("replace digits", 1.0)
    assert corrupted(one, way, 0, 0) == corrupted(one, way, 0, 0)
    assert len({corrupted(one, way, index, seed) for index in (0, 1) for seed in (0, 1)}) == 4
