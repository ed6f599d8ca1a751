from dataclasses import replace

import numpy as np
import pytest

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from debate.types import TurnId
from debate_rl.inspector.views import token_view
from debate_rl.inspector.views.tokens import TokenTotal
from learner import AdvantageConfig, TurnAdvantage, make_rows, transitions_of
from rewards import RewardConfig, score_debate
from transcripts import Record, TurnAdvantages

from .conftest import with_turn


@pytest.fixture(scope="module")
def record():
    """A debate of one character a token, with an advantage for all but one turn."""
    problem = Problem("p", "2 + 2?", "4", kind="number")
    config = DebateConfig(num_agents=3, num_rounds=2)
    policy = scripted_debaters({"p": Answers("4", ("5",))}, tokens=True)
    [debate] = run_debates([problem], policy, config, seed=1)
    parts = tuple(
        TurnAdvantages(turn.id, 0.5 + turn.id.agent, None if turn.id.round == 0 else -1.5, -0.25)
        for turn in debate.turns[1:]
    )
    return Record(debate, 0, "p", None, None, parts)


def rows_of(record, config):
    """The training rows of the record's turns, by turn."""
    debate = record.debate
    turns = transitions_of([debate], [score_debate(debate, record.correct, RewardConfig())], [0])
    parts = {part.turn: TurnAdvantage(part.generator, part.judge, part.format) for part in record.advantages}
    return {row.turn: row for row in make_rows(turns, [parts.get(one.turn.id) for one in turns], config)}


@pytest.mark.parametrize("evaluation", ["generator", "judge", "both"])
def test_tokens_have_what_their_row_has(record, evaluation):
    rows = rows_of(record, AdvantageConfig(evaluation=evaluation))
    assert set(rows) == {turn.id for turn in record.debate.turns[1:]}
    for turn in record.debate.turns[1:]:
        view = token_view(record, turn.id, evaluation=evaluation)
        row, prompt = rows[turn.id], len(turn.completion.prompt_tokens)
        assert not view.why
        assert [token.token for token in view.tokens] == row.input_ids[prompt:].tolist()
        assert [token.advantage for token in view.tokens] == row.advantages[prompt:].tolist()
        names = {"generator": 1, "judge": 2, "both": 2}
        assert [names[token.stream] for token in view.tokens] == row.stream[prompt:].tolist()
        assert [np.float32(token.logprob) for token in view.tokens] == row.sampling_logprobs[prompt:].tolist()
        assert "".join(token.text for token in view.tokens) == turn.completion.text
        assert sum(total.tokens for total in view.totals) == len(view.tokens)


def test_a_turn_without_signal_has_no_advantage(record):
    view = token_view(record, TurnId(0, 0), evaluation="judge")
    assert {one.advantage for one in (*view.tokens, *view.totals)} == {None}


def test_sections_streams_and_totals_by_hand(record):
    """Two letters, one forced, in the tags of a solution; generator +2, and -0.5 for the missing votes."""
    old = record.debate.turn(TurnId(0, 1))
    text = "<solution>ab</solution>"
    parsed = replace(old.parsed, solution=type(old.parsed.solution)(10, 12), evaluation=None)
    parsed = replace(parsed, comparison=None, comparison_block=None, thinking=None)
    arrays = {"tokens": (5, 6, 7, 8, 9), "logprobs": (-1.0, -0.5, 0.0, -0.25, -2.0), "forced": (2,)}
    completion = replace(old.completion, text=text, offsets=(0, 10, 11, 12, len(text)), **arrays)
    changed = with_turn(record, old.id, completion=completion, parsed=parsed)
    changed = replace(changed, advantages=(TurnAdvantages(old.id, 2.0, None, -0.5),))
    view = token_view(changed, old.id, evaluation="judge")
    assert [token.text for token in view.tokens] == ["<solution>", "a", "b", "</solution>", ""]
    assert [token.section for token in view.tokens] == ["other", "solution", "solution", "other", "other"]
    assert [token.advantage for token in view.tokens] == [2.0, 2.0, None, 2.0, 1.5]
    assert [token.logprob for token in view.tokens] == [-1.0, -0.5, None, -0.25, -2.0]
    assert view.totals == (
        TokenTotal("other", "generator", 3, 5.5, -3.25 / 3),
        TokenTotal("solution", "generator", 1, 2.0, -0.5),
        TokenTotal("solution", "forced", 1, None, None),
    )


def test_arrays_that_cannot_be_shown_are_told_of(record):
    turn, backwards = record.debate.turn(TurnId(0, 0)), "the offsets do not increase within the text"
    count = len(turn.completion.tokens)
    for why, changes in (
        ("no token arrays are stored", {"tokens": (), "logprobs": (), "offsets": ()}),
        ("but 1 log-probabilities", {"logprobs": (0.0,)}),
        ("but 2 offsets", {"offsets": (0, 1)}),
        ("forced: -1 is not an index", {"forced": (-1,)}),
        ("forced: 1000000000 is not an index", {"forced": (10**9,)}),
        (backwards, {"offsets": (1, 0, *range(2, count))}),
        (backwards, {"offsets": (*range(count - 1), 10**9)}),
        (backwards, {"offsets": (-1, *range(1, count))}),
    ):
        changed = with_turn(record, turn.id, completion=replace(turn.completion, **changes))
        view = token_view(changed, turn.id, evaluation="judge")
        assert (why in view.why, view.tokens, view.totals) == (True, (), ())
    with pytest.raises(ValueError, match=r"no turn 8\.0"):
        token_view(record, TurnId(8, 0), evaluation="judge")
