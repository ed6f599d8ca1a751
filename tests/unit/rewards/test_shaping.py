from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.config import DebateConfig
from debate.types import Completion, Debate, ParsedTurn, Problem, Span, Turn, TurnId
from rewards import RewardConfig, score_debate
from rewards.shaping import containment, shaping_of, shingles

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
