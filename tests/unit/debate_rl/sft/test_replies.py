"""Which replies are learnt: filters that say what they leave out, and problems that stay apart."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.types import Problem
from debate_rl.config.data import SftConfig
from debate_rl.sampling.load_problems import OverlapWarning
from debate_rl.sft.examples import Example
from debate_rl.sft.replies import held_apart, load_replies, steps_of
from envs.errors import DataError, DataWarning


def rows(count, **more):
    texts = ((n, f"{n} + {n}?", f"It is {2 * n}.") for n in range(count))
    return [{"question": asked, "reply": said, "level": n % 3, **more} for n, asked, said in texts]


def test_every_filter_says_how_many_it_left_out(rows_file, sft_config):
    twice = [*rows(9), *rows(2), {"question": "1 + 1?", "reply": "Two."}]
    twice += [{"question": "4 + 4?", "reply": "8" * 99}]
    config = sft_config(rows_file(twice), sft={"per_problem": 1, "max_tokens": 60})
    path = Path(config.sft.data[0])
    path.write_text(
        path.read_text().replace('"4 + 4?", "reply": "It is 8."', '"4 + 4?", "reply": "' + "8" * 80 + '"')
    )
    with pytest.warns(DataWarning, match=r"sft.max_tokens=60: 1 of 9 replies left out \(11.1%\)"):
        data = load_replies(config)
    wanted = {"duplicates": 2, "beyond 1 per problem": 2, "longer than 60 tokens (11.1%)": 1}
    assert dict(data.lost) == wanted
    assert (len(data.learnt), len(data.train), data.held_back) == (8, 8, ())
    assert data.lines()[0].startswith("replies: 8 to 8 problems to train on, 0 held back; tokens: ")


def test_replies_of_levels_are_kept(rows_file, sft_config):
    data = load_replies(sft_config(rows_file(rows(9)), sft={"levels": [2]}))
    assert {problem.level for problem in data.train} == {"2"}
    assert dict(data.lost) == {"of other levels": 6}
    with pytest.raises(DataError, match=r"sft.levels = \[7\]: no reply"):
        load_replies(sft_config(rows_file(rows(9)), sft={"levels": [7]}))


def test_a_held_out_problem_is_not_learnt(rows_file, sft_config):
    path = rows_file(rows(5))
    held = {"kind": "file", "path": rows_file([{"question": "1 + 1?", "answer": "2"}], "held.jsonl")}
    tables = {"held_out": {"limit": 1, "split": "all", **held}}
    with pytest.raises(DataError, match=r"1 questions are also trained on.*env.decontaminate='exact'"):
        load_replies(sft_config(path, **tables))
    with pytest.warns(OverlapWarning, match="1 of 5 training problems left out"):
        data = load_replies(sft_config(path, **tables, env={"kind": "gsm8k", "decontaminate": "exact"}))
    assert "1 + 1?" not in {problem.question for problem in data.train}
    assert dict(data.lost) == {"to held-out problems": 1}


def test_steps_are_those_of_the_epochs():
    assert steps_of(SftConfig(epochs=3, batch_size=10), 25) == 7
    assert steps_of(SftConfig(epochs=3, batch_size=10, steps=5), 25) == 5
    with pytest.raises(ValueError, match=r"sft.epochs = 0.5:"):
        steps_of(SftConfig(epochs=0.5, batch_size=10), 19)


@given(st.lists(st.integers(0, 8), min_size=2, max_size=30), st.integers(0, 6), st.integers(0, 3))
def test_held_back_problems_are_whole_and_as_many_as_wanted(problems, count, seed):
    pairs = [(Example(Problem(str(p), f"{p}?"), str(n)), None) for n, p in enumerate(problems)]
    try:
        learnt, held = held_apart(pairs, count, seed)
    except DataError:
        assert count  # all of them would have to be held back
        return
    assert sorted(int(e.reply) for e, _ in (*learnt, *held)) == list(range(len(problems)))
    assert {e.problem.id for e, _ in learnt}.isdisjoint(e.problem.id for e, _ in held)
    assert len(held) >= count
    assert [e.reply for e, _ in held] == [e.reply for e, _ in held_apart(pairs, count, seed)[1]]
