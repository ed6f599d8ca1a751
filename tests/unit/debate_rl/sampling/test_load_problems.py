import json
import sys
import types
from itertools import pairwise

import pytest
from msgspec import UNSET

from debate.prompting.prompt import opening_tokens
from debate.prompting.texts import SHIPPED
from debate_rl.config import Config
from debate_rl.engines import counting_policy
from debate_rl.rollouts.worker import shown_at
from debate_rl.sampling.draw_problems import with_epochs
from debate_rl.sampling.load_problems import OverlapWarning, load_held_out, load_run_problems
from envs import DataError
from envs.data.decontamination import Overlap
from envs.errors import DataWarning


def files(data):
    return [name for name in data.checksums if not name.startswith(("train: ", "held out: ", "prompts: "))]


def loaded(**changes):
    return load_run_problems(Config.model_validate({"model": {"tiny": {}}} | changes))


def write(path, *rows, **more):
    """Write rows into a file, each a table or the question of one; return the path."""
    tables = [row if isinstance(row, dict) else {"question": row, "answer": "1"} for row in rows]
    path.write_text("".join(json.dumps(row | more) + "\n" for row in tables), encoding="utf-8")
    return str(path)


@pytest.fixture
def file(tmp_path):
    rows = ({"id": f"q{n}", "question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(10))
    return write(tmp_path / "own.jsonl", *rows)


def ids(problems):
    return sorted(problem.id for problem in problems)


def test_a_familys_splits_are_disjoint_and_the_held_out_ones_do_not_depend_on_the_runs_seed():
    env, held_out = {"kind": "pair_sum", "levels": [1], "limit": 50}, {"limit": 30}
    one, other = (loaded(env=env, held_out=held_out, seed=seed) for seed in (1, 2))
    assert len(one.train) == 50
    assert not {p.question for p in one.train} & {p.question for p in one.held_out}
    assert one.held_out == other.held_out
    assert one.train != other.train
    assert loaded(env=env, held_out=held_out | {"seed": 9}).held_out != one.held_out
    other = loaded(env=env, held_out={"kind": "words", "limit": 1})
    assert (other.environment.name, other.eval_environment.name) == ("pair_sum", "words")
    assert other.eval_environment.grade(other.held_out[0], other.held_out[0].answer).verdict is True


def test_one_file_is_split_into_trained_and_held_out(file):
    env = {"kind": "jsonl", "path": file}
    data = loaded(env=env, held_out={"limit": 3})
    assert (len(data.train), len(data.held_out)) == (7, 3)
    assert ids([*data.train, *data.held_out]) == [f"q{n}" for n in range(10)]
    assert files(data) == [file]
    other_run = loaded(env=env | {"limit": 4}, held_out={"limit": 3}, seed=8)
    assert other_run.held_out == data.held_out
    assert set(other_run.train) < set(data.train)
    assert len(other_run.train) == 4
    assert loaded(env=env, held_out={"limit": 0}).held_out == ()


def test_a_question_that_stands_twice_is_not_on_both_sides(tmp_path):
    env = {"kind": "jsonl", "path": write(tmp_path / "twice.jsonl", *(f"What is {n % 3}?" for n in range(9)))}
    for seed in range(8):
        data = loaded(env=env, held_out={"limit": 2, "seed": seed})
        assert len(data.held_out) == 2
        assert not {p.question for p in data.train} & {p.question for p in data.held_out}


def test_a_held_out_file_that_shares_questions_is_refused(file, tmp_path):
    other = write(tmp_path / "held.jsonl", "What is 4 + 1?")
    env = {"kind": "jsonl", "path": file}
    with pytest.raises(DataError, match=r"1 questions are also trained on.*What is 4 \+ 1\?"):
        loaded(env=env, held_out={"path": other})
    fresh = write(tmp_path / "fresh.jsonl", "What is 44 + 1?", id="x")
    data = loaded(env=env, held_out={"path": fresh})
    assert (len(data.train), ids(data.held_out)) == (10, ["x"])
    assert files(data) == [file, fresh]


def test_a_folder_of_shards_has_a_checksum_for_each_file(tmp_path):
    names = ("train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001")
    for n, name in enumerate(names):
        write(tmp_path / f"{name}.jsonl", f"What is {n}?", answer=str(n))
    folder = str(tmp_path)
    data = loaded(env={"kind": "file", "path": folder}, held_out={"path": folder})
    assert [p.answer for p in data.held_out] == ["2"]
    assert sorted(p.answer for p in data.train) == ["0", "1"]
    assert files(data) == [str(tmp_path / f"{name}.jsonl") for name in sorted(names)]


def test_a_held_out_file_may_name_its_fields_its_own_way(file, tmp_path):
    rows = ({"prompt": f"What is {n} + 50?", "gold": n + 50, "level": n % 2} for n in range(4))
    other = write(tmp_path / "held.jsonl", *rows, type="sum")
    env, fields = {"kind": "file", "path": file}, {"question": "prompt", "answer": "gold"}
    data = loaded(env=env, held_out={"path": other, "fields": fields, "levels": [1]})
    assert [p.answer for p in data.held_out] in (["51", "53"], ["53", "51"])
    assert any(" fields={'question': 'prompt', 'answer': 'gold'}" in name for name in data.checksums)
    assert len(loaded(env=env, held_out={"path": other, "fields": fields, "subjects": ["sum"]}).held_out) == 4
    with pytest.raises(DataError, match=r"held.jsonl, line 1, field 'answer or .*held_out\.fields"):
        loaded(env=env, held_out={"path": other})
    theirs = {"kind": "file", "path": other, "fields": fields}  # the trained file's names are the default
    assert len(loaded(env=theirs, held_out={"path": other, "levels": [1]} | {"limit": 0}).train) == 4


def test_open_problems_are_all_trained_on(tmp_path):
    path = write(tmp_path / "open.jsonl", *(f"Why {n}?" for n in range(5)))
    data = loaded(env={"kind": "open", "path": path})
    assert (len(data.train), data.held_out) == (5, ())
    assert {problem.kind for problem in data.train} == {"open"}


def test_a_prompt_file_of_ones_own_belongs_to_the_runs_data(tmp_path):
    own = tmp_path / "own.toml"
    own.write_bytes((SHIPPED / "tiny.toml").read_bytes())
    env, held_out = {"kind": "pair_sum", "limit": 20}, {"limit": 2}
    assert files(loaded(env=env, held_out=held_out, debate={"prompts": str(own)})) == [str(own)]
    assert not files(loaded(env=env, held_out=held_out))


WORDS = " ".join(f"w{n}" for n in range(20))  # 8 runs of 13 words


def test_held_out_problems_that_share_runs_with_trained_ones_are_told(tmp_path):
    train = write(tmp_path / "train.jsonl", WORDS, id="t")
    overlapping = {"id": "a", "question": " ".join(WORDS.split()[:14]) + " x", "answer": "1"}
    held = write(tmp_path / "held.jsonl", overlapping, "What is 1 + 1?")
    env, held_out = {"kind": "file", "path": train}, {"path": held}
    line = r"1 of 2 held-out problems overlap with training \(0 the same, 1 by 13-word runs\): a \(0\.67\)$"
    with pytest.warns(OverlapWarning, match=f"^{line}"):
        data = loaded(env=env, held_out=held_out)
    assert data.overlaps == (Overlap("a", "t", "ngram", 2 / 3),)
    found = {"held_out": "a", "train": "t", "kind": "ngram", "share": 2 / 3}
    counts = {"train": {"problems": 1}, "held_out": {"problems": 2}}
    assert data.findings() == {"overlaps": [found], "problems": counts}


def test_trained_problems_that_overlap_with_held_out_ones_are_left_out(tmp_path):
    asked = ["What is 1 + 1?", "What is $1+1$?", WORDS + " again", "What is 2 + 2?"]
    train = [{"id": f"t{n}", "question": question} for n, question in enumerate(asked)]
    held = [{"id": "a", "question": asked[0]}, {"id": "b", "question": WORDS}]
    env = {"kind": "file", "path": write(tmp_path / "train.jsonl", *train, answer="2")}
    held_out = {"path": write(tmp_path / "held.jsonl", *held, answer="2")}
    with pytest.raises(DataError, match=r"are also trained on.*or set env\.decontaminate"):
        loaded(env=env, held_out=held_out)
    line = r"env.decontaminate='ngram': 3 of 4 training problems left out \(2 equal to .*, 1 by 13-word"
    with pytest.warns(OverlapWarning, match=f"^{line}"):
        data = loaded(env=env | {"decontaminate": "ngram"}, held_out=held_out)
    assert (ids(data.train), ids(data.held_out), data.overlaps) == (["t3"], ["a", "b"], ())
    counts = {"train": {"problems": 1}, "held_out": {"problems": 2}}
    assert data.findings() == {"overlaps": [], "problems": counts, "left_out": {"exact": 2, "ngram": 1}}
    with pytest.warns(OverlapWarning) as told:
        data = loaded(env=env | {"decontaminate": "exact"}, held_out=held_out)
    assert [str(one.message).partition(":")[0] for one in told] == [
        "env.decontaminate='exact'",
        "1 of 2 held-out problems overlap with training (0 the same, 1 by 13-word runs)",
    ]
    assert (ids(data.train), data.left_out) == (["t2", "t3"], {"exact": 2, "ngram": 0})


def test_every_source_has_checksums_of_what_is_trained_on_and_held_out(monkeypatch):
    def load_dataset(hub_id, config, *, split):
        return [{"question": f"What is {n} + {len(split)}?", "answer": f"#### {n}"} for n in range(8)]

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    env, held_out = {"kind": "gsm8k", "limit": 4}, {"limit": 3}
    data = loaded(env=env, held_out=held_out)
    named = ["train: kind=gsm8k split=train limit=4 seed=0", "held out: kind=gsm8k split=test limit=3 seed=0"]
    assert list(data.checksums) == ["prompts: default", *named]
    assert all(len(value) == 64 for value in data.checksums.values())
    assert loaded(env=env, held_out=held_out).checksums == data.checksums
    other = loaded(env=env, held_out=held_out, seed=1).checksums
    assert other[named[1]] == data.checksums[named[1]]
    assert named[0] not in other


def test_a_changed_answer_changes_the_checksum(tmp_path):
    def checksums(answer):
        path = write(tmp_path / "own.jsonl", *(f"What is {n}?" for n in range(3)), answer=answer)
        found = loaded(env={"kind": "file", "path": path}, held_out={"limit": 1}).checksums
        return {name: value for name, value in found.items() if name != "prompts: default"}

    one, two = checksums("1"), checksums("2")
    assert list(one) == list(two)
    assert not set(one.values()) & set(two.values())
    assert "held_out.limit=1 held_out.seed=0" in list(one)[1]


def test_problems_are_counted_by_level_and_source(tmp_path):
    levels = ("5", "1", "5", "", "1", "5")
    rows = ({"question": f"{n}?", "level": one, "subject": "abc"[n % 3]} for n, one in enumerate(levels))
    path = write(tmp_path / "own.jsonl", *rows, answer="1")
    data = loaded(env={"kind": "file", "path": path}, held_out={"limit": 0})
    levels, sources = {"": 1, "1": 2, "5": 3}, {"file/a": 2, "file/b": 2, "file/c": 2}
    train = {"problems": 6, "levels": levels, "sources": sources}
    assert data.findings()["problems"] == {"train": train, "held_out": {"problems": 0}}
    assert data.lines() == [
        "problems: 6 to train on, 0 held out",
        "  levels, to train on: none: 1, 1: 2, 5: 3",
        "  sources, to train on: file/a: 2, file/b: 2, file/c: 2",
    ]


def test_long_prompts_are_left_out_and_their_share_is_told(tmp_path):
    rows = ({"id": f"q{n}", "question": "x" * 10 * n + "?", "answer": "1"} for n in range(1, 11))
    env = {"kind": "file", "path": write(tmp_path / "own.jsonl", *rows)}
    tiny = {"model": {"tiny": {"fallback": "bytes"}}, "debate": {"prompts": "tiny"}, "held_out": {"limit": 0}}
    config = Config.model_validate(tiny | {"env": env})
    policy, every = counting_policy(config), load_run_problems(config).train
    lengths = sorted(opening_tokens(problem, policy, config.debate) for problem in every)
    assert [b - a for a, b in pairwise(lengths)] == [10] * 9
    most = lengths[6]
    line = rf"env\.max_prompt_tokens={most}: 3 of 10 training problems left out \(30\.0%\): prompts too long"
    with pytest.warns(DataWarning, match=line):
        data = loaded(**tiny, env=env | {"max_prompt_tokens": most})
    assert ids(data.train) == sorted(f"q{n}" for n in range(1, 8))
    assert data.findings()["too_long"] == {"left_out": 3, "of": 10}
    with pytest.raises(DataError, match="leaves no training problem: the first prompts of all 10"):
        loaded(**tiny, env=env | {"max_prompt_tokens": 1})


def test_test_time_learning_is_declared(file):
    env, held_out = {"kind": "file", "path": file}, {"path": file, "limit": 4}
    with pytest.raises(DataError, match="4 questions are also trained on"):
        loaded(env=env, held_out=held_out)
    with pytest.warns(OverlapWarning, match=r"^test-time learning: 4 of 4 held-out problems are trained on$"):
        data = loaded(env=env | {"decontaminate": "never"}, held_out=held_out)
    assert (len(data.train), len(data.held_out), data.trained_on) == (10, 4, 4)
    assert data.findings()["test_time_learning"] == {"trained_on": 4, "of": 4}
    with pytest.warns(OverlapWarning, match="3 of 3"):
        one_file = loaded(env=env | {"decontaminate": "never"}, held_out={"limit": 3})
    assert (len(one_file.train), one_file.trained_on) == (10, 3)


@pytest.mark.parametrize(
    ("train", "problems", "steps"),
    [
        ({"epochs": 2, "batch_size": 64}, 3994, 124),
        ({"epochs": 2, "batch_size": 64, "steps": 100}, 3994, 100),
        ({"epochs": 0.5, "batch_size": 3}, 12, 2),
        ({"epochs": 1, "batch_size": 5}, 5, 1),
        ({"batch_size": 5}, 5, 100),
    ],
)
def test_epochs_are_whole_steps(train, problems, steps):
    config = Config.model_validate({"model": {"tiny": {}}, "train": train})
    once = with_epochs(config, problems)
    assert once.train.steps == steps
    assert with_epochs(once, problems) == once


def with_shots(tmp_path, **shots):
    def rows(name, numbers):
        lines = ({"question": f"{n} + 1?", "answer": f"It is {n + 1}.\n#### {n + 1}"} for n in numbers)
        return write(tmp_path / f"{name}.jsonl", *lines)

    env, held_out = {"kind": "gsm8k", "path": rows("train", range(8))}, {"path": rows("test", range(50, 53))}
    rows("shots", [1, 2, 51])
    return Config.model_validate({"env": env, "held_out": held_out, "model": {"tiny": {}}, "shots": shots})


def test_examples_come_from_the_training_split_and_never_are_the_problem(tmp_path):
    data = load_run_problems(with_shots(tmp_path, count=3))
    for problem in (*data.train, *data.held_out):
        assert len(problem.shots) == 3
        assert problem.question not in {shot.question for shot in problem.shots}


def test_examples_that_fade_are_in_no_evaluation(tmp_path):
    config = with_shots(tmp_path, count=[[0, 2], [4, 0]])
    data = load_run_problems(config)
    assert {len(problem.shots) for problem in data.train} == {2}
    assert {problem.shots for problem in data.held_out} == {UNSET}
    shown = [shown_at(config, data.train[:1], step)[0].shots for step in range(5)]
    assert [0 if shots is UNSET else len(shots) for shots in shown] == [2, 2, 1, 1, 0]


def test_a_file_that_holds_a_held_out_problem_is_refused(tmp_path):
    for count in (1, [[0, 1], [3, 0]]):
        for load in (load_run_problems, load_held_out):
            with pytest.raises(DataError, match=r"shots: .*shots\.jsonl"):
                load(with_shots(tmp_path, count=count, path=str(tmp_path / "shots.jsonl")))
