from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from debate.config import DebateConfig
from debate.types import Completion, Debate, ParsedTurn, Problem, Span, Turn, TurnId
from learner import AdvantageConfig, make_rows, turn_advantages
from rewards import RewardConfig, score_debate
from rewards.config import Overlong
from rewards.overlong import overlong_penalty
from rewards.shaping import containment, shaping_of, shingles

from ..learner.conftest import transition_of

TEXT = "first we add two and two which gives four so the answer is four"


def held(rounds: Sequence[Sequence[tuple[str | None, str]]], *, tokens: int = 0) -> Debate:
    """Rounds of (answer, text) for each agent; every agent is shown all of the round before."""
    agents = len(rounds[0])

    def turn(round_: int, agent: int, answer: str | None, text: str) -> Turn:
        shown = tuple(TurnId(other, round_ - 1) for other in range(agents)) if round_ else ()
        said = Completion((), (), (), text, "stop", 0, token_count=tokens)
        solution = Span(0, len(text)) if text else None
        return Turn(
            TurnId(agent, round_), f"K{agent}", shown, said, ParsedTurn(solution=solution, answer=answer)
        )

    turns = tuple(turn(r, a, *said) for r, row in enumerate(rounds) for a, said in enumerate(row))
    protocol = DebateConfig(num_agents=agents, num_rounds=len(rounds), final_ballot=False, max_tokens=80)
    protocol = protocol.model_copy(update={"thinking_tokens": 20})
    return Debate(Problem("p", "?", "4"), (), turns, (), 1, 0, protocol)


def parts(debate: Debate, **settings: object) -> list[tuple[float, ...]]:
    return [tuple(part[:3]) for part in shaping_of(debate, RewardConfig.model_validate(settings)).values()]


def test_an_answer_is_new_where_no_other_agent_gave_it_so_far():
    debate = held([[("4", "a"), ("$ 4 $", "b"), ("5", "c")], [("5", "d"), ("6", "e"), (None, "f")]])
    assert [part[0] for part in parts(debate, novelty_bonus=0.3)] == [0, 0, 0.3, 0, 0.3, 0]


def test_an_own_answer_repeated_stays_new_and_one_that_others_take_up_later_was_new():
    debate = held([[("4", "a"), ("5", "b")], [("4", "a"), ("4", "b")]])
    assert [part[0] for part in parts(debate, novelty_bonus=0.3)] == [0.3, 0.3, 0, 0]


def test_the_key_says_which_answers_are_the_same():
    debate = held([[("1/2", "a"), ("0.5", "b")]])
    scheme = RewardConfig(novelty_bonus=0.3)
    assert [part.novelty for part in shaping_of(debate, scheme).values()] == [0.3, 0.3]
    same = shaping_of(debate, scheme, lambda problem, answer: str(eval(answer)))
    assert [part.novelty for part in same.values()] == [0, 0]


def test_a_copy_is_of_what_the_author_was_shown_and_never_of_its_own_work():
    debate = held(
        [[("4", TEXT), ("4", "x y z w v")], [("4", TEXT), ("4", TEXT.upper())], [("4", "q r"), ("4", TEXT)]]
    )
    penalties = [part[1] for part in parts(debate, copy_penalty=-0.2)]
    assert penalties == [0, 0, 0, -0.2, 0, -0.2]


def test_a_copy_with_a_word_changed_is_one_until_too_little_is_left(monkeypatch):
    changed = TEXT.replace("two which", "two that")  # 4 of the 11 runs hold the word
    debate = held([[("4", "x y z w v"), ("4", TEXT)], [("4", changed), ("4", "")]])
    assert containment(shingles(changed), [shingles(TEXT)]) == pytest.approx(7 / 11)
    assert parts(debate, copy_penalty=-0.2)[2][1] == 0
    monkeypatch.setattr("rewards.shaping.COPY_FROM", 0.6)
    assert parts(debate, copy_penalty=-0.2)[2][1] == -0.2


def test_length_counts_in_proportion_to_the_limit_of_reply_and_thinking():
    assert parts(held([[("4", "a"), ("4", "b")]], tokens=25), length_penalty=-0.4) == [(0, 0, -0.1)] * 2
    assert parts(held([[("4", "a")]], tokens=900), length_penalty=-0.4) == [(0, 0, -0.4)]
    assert str(parts(held([[("4", "a")]]), length_penalty=-0.4)[0][2]) == "0.0"


def test_shaping_is_a_stream_of_its_own_and_counted():
    debate = held([[("4", "a"), ("5", "b"), ("5", "c")]], tokens=50)
    scheme = RewardConfig(novelty_bonus=0.3, length_penalty=-0.2)
    correct = [[True], [False], [False]]
    plain, shaped = (score_debate(debate, correct, config) for config in (RewardConfig(), scheme))
    assert shaped.shaping == ((pytest.approx(0.2),), (-0.1,), (-0.1,))
    assert (shaped.count("shaping/new"), shaped.count("shaping/copied")) == (1, 0)
    assert (shaped.peer, shaped.truth, shaped.judge, shaped.format) == (
        plain.peer,
        plain.truth,
        plain.judge,
        plain.format,
    )
    assert scheme.tells_right


def test_it_fades_with_the_step():
    debate = held([[("4", "a")]])
    scheme = RewardConfig.model_validate({"novelty_bonus": [[0, 0.4], [10, 0]]})
    assert [score_debate(debate, [[True]], scheme.at_step(step)).shaping for step in (0, 5)] == [
        ((0.4,),),
        ((0.2,),),
    ]
    assert shaping_of(debate, scheme.at_step(10)) == {}


@given(st.text(), st.text())
def test_containment_is_a_share_and_whole_of_oneself(first: str, second: str):
    own, other = shingles(first), shingles(second)
    if own:
        assert containment(own, [own]) == 1.0
        assert 0.0 <= containment(own, [other]) <= 1.0


SOFT = Overlong(tokens=100, penalty=-1.0)


def reply(tokens: int, stop_reason="stop") -> Completion:
    return Completion((), (), (), "", stop_reason, 0, token_count=tokens)


@pytest.mark.parametrize(
    ("tokens", "penalty"), [(0, 0.0), (900, 0.0), (901, -0.01), (950, -0.5), (999, -0.99), (1000, -1.0)]
)
def test_the_penalty_falls_linearly_over_the_last_tokens_of_the_limit(tokens, penalty):
    assert overlong_penalty(reply(tokens), 1000, SOFT) == pytest.approx(penalty)


def test_a_reply_that_was_cut_off_has_the_whole_penalty_also_where_its_tokens_are_not_known():
    assert overlong_penalty(reply(0, "length"), 1000, SOFT) == -1.0


@given(st.integers(0, 2000), st.integers(0, 50), st.integers(1, 999))
def test_a_longer_reply_never_has_a_smaller_penalty(tokens, more, buffer):
    config = Overlong(tokens=buffer, penalty=-1.0)
    shorter, longer = (overlong_penalty(reply(count), 1000, config) for count in (tokens, tokens + more))
    assert -1.0 <= longer <= shorter <= 0.0


def test_the_penalty_is_added_to_the_shaping_of_solutions_and_counts_as_no_missing_vote(make_debate):
    """Limit 2048 (the default); 2023 tokens are 75 of the last 100. A ballot that was cut off has none."""
    debate = make_debate()
    long = {TurnId(0, 0): reply(2023), TurnId(1, 1): reply(5, "length")}
    turns = tuple(replace(turn, completion=long.get(turn.id, turn.completion)) for turn in debate.turns)
    debate = replace(debate, turns=turns)
    rewards = score_debate(debate, None, RewardConfig(overlong=SOFT))
    assert rewards.shaping == ((-0.75,), (0.0,), (0.0,))
    assert rewards.format == ((0.0, -0.5),) * 3
    assert rewards.count("format/penalties") == 3
    for other in ("keep", "mask"):
        plain = score_debate(debate, None, RewardConfig(overlong=other))
        assert (plain.shaping, plain.format) == (UNSET, rewards.format)


@pytest.mark.parametrize("key", ["overlong_tokens", "overlong_penalty"])
def test_a_former_key_is_refused_with_what_replaces_it(key):
    with pytest.raises(ValueError, match=rf"unknown key '{key}'; it is now overlong = \{{"):
        RewardConfig.model_validate({"overlong": "keep", key: 1})


def test_a_masked_reply_leaves_the_loss_and_still_counts_in_the_baseline():
    """Truth 1, 1 and 0, the last cut off: mean 2/3 and standard deviation .4714 either way."""
    ends = (("stop", 1.0), ("stop", 1.0), ("length", 0.0))
    turns = [transition_of(stop_reason=end, truth=truth) for end, truth in ends]
    config = AdvantageConfig()

    def rows(overlong: str) -> list[float]:
        rewards = RewardConfig(overlong=overlong, truth_weight=1.0)
        advantages = turn_advantages(turns, rewards, config, {})
        return [float(row.advantages[-1]) for row in make_rows(turns, advantages.turns, config)]

    high, low = (1 / 3) / (0.4714045 + 1e-4), (-2 / 3) / (0.4714045 + 1e-4)
    assert rows("keep") == pytest.approx([high, high, low], abs=1e-5)
    assert rows("mask") == pytest.approx([high, high], abs=1e-5)


def test_another_word_is_refused_with_the_table():
    with pytest.raises(ValueError, match=r'must be "keep", "mask" or a table such as \{tokens = 256'):
        RewardConfig.model_validate({"overlong": "penalize"})
