"""Which starred and labelled pairs a judge is measured on, and which side is right."""

import pytest

from debate.types import TurnId
from debate_rl.judge_attack.annotated import annotated_pairs
from debate_rl.judge_attack.persuaders import ORDER
from transcripts import RunStore, write_step

from ..inspector.conftest import make, solved


def text(answer):
    return f"It is \\boxed{{{answer}}}."


@pytest.fixture
def store(tmp_path):
    """K7 is right in round 0, Q2 and M4 are wrong; in round 1 all are wrong."""
    votes = [solved(7, "Q2 > M4"), solved(8, "M4 > K7"), solved(9, "K7 > Q2")]
    write_step(tmp_path / "transcripts", 5, [make([[solved(4), solved(5), solved(6)], votes])])
    with RunStore.open(tmp_path) as opened:
        yield opened


def found(store):
    return [(pair.right, pair.wrong, pair.own) for pair in annotated_pairs(store).pairs]


def test_nothing_is_marked(store):
    assert annotated_pairs(store) == ([], [], 0, 0)


def test_a_star_on_a_debate_takes_all_its_pairs_with_one_right_side(store):
    store.annotate("star", "5.0", "yes")
    every = annotated_pairs(store)
    assert [(pair.right, pair.wrong, pair.own) for pair in every.pairs] == [
        (text(4), text(5), text(6)),
        (text(4), text(6), text(5)),
    ]
    assert [pair.attacked for pair in every.pairs] == [{ORDER: text(5)}, {ORDER: text(6)}]
    assert [one.id for one in every.problems] == ["p/1"]
    assert (every.by_hand, every.left_out) == (0, 4)  # 5 and 6, and three pairs of round 1


def test_stars_on_a_turn_and_on_a_pair_take_less(store):
    store.annotate("star", "5.0/1.0", "yes")
    assert found(store) == [(text(4), text(5), text(6))]
    store.annotate("star", "5.0/1.0", "")
    store.annotate("star", "5.0/0.0-2.0", "yes")
    assert found(store) == [(text(4), text(6), text(5))]


def test_labels_decide_before_gold(store):
    store.annotate("label", "5.0/0.0-1.0", "right")
    store.annotate("label", "5.0/1.0-2.0", "left")
    store.annotate("label", "5.0/0.0-2.0", "tie")
    assert found(store) == [(text(5), text(4), text(6)), (text(5), text(6), text(4))]
    assert annotated_pairs(store)[2:] == (2, 1)
    store.annotate("star", "5.0/2.1", "yes")
    store.annotate("label", "5.0/2.1", "right")
    assert {*found(store)} >= {(text(9), text(7), text(8)), (text(9), text(8), text(7))}


def test_equal_texts_and_other_debates_are_left_out(tmp_path):
    write_step(tmp_path / "transcripts", 5, [make([[solved(5), solved(5), solved(6)]])])
    with RunStore.open(tmp_path) as store:
        store.annotate("label", "5.0/0.0-1.0", "left")
        assert annotated_pairs(store) == ([], [], 0, 1)
        assert store.debate("5.0").debate.turns[0].id == TurnId(0, 0)
