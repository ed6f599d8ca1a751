import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate_rl.judging import rollouts
from debate_rl.judging.rollouts import read_rollouts
from envs import DataError

HERE = Path(__file__).parents[3] / "data/rollouts"
SAID = {"message": {"role": "assistant", "content": "7"}}
ROW = {"question": "What is 3 + 4?", "response": "It is 7."}


@pytest.fixture
def read(tmp_path):
    def call(*rows, name="r.jsonl"):
        path = tmp_path / name
        path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
        return read_rollouts(path)

    return call


@pytest.mark.parametrize(
    ("name", "form", "ids"),
    [
        ("traces.jsonl", "verifiers", ["0", "1"]),
        ("sums.eval", "Inspect AI", ["sum-7", "sum-8"]),
        ("sums.json", "Inspect AI", ["sum-7"]),
    ],
)
def test_files_that_the_other_tools_wrote(name, form, ids):
    found = read_rollouts(HERE / name)
    assert (found.format, dict(found.left_out)) == (form, {})
    assert [one.problem.id for one in found.groups] == ids
    assert [one.problem.answer for one in found.groups] == ["7", "8"][: len(ids)]
    said = [{(one.text, one.right) for one in group.responses} for group in found.groups]
    assert said[0] >= {("It is 7.", True), ("It is 12.", False)}
    if len(ids) == 2:
        assert ("<think>3 and 4</think>It is 7.", True) in said[0]
        assert said[1] == {("It is 12.", False), ("It is 8 & not <b>12</b>.", True)}
        assert [len(group.responses) for group in found.groups] == [3, 3]


def test_lines_of_json_in_several_spellings(read):
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"text": "Who?"}]}]
    found = read(
        ROW | {"reward": 1, "answer": 7, "id": "sum"},
        ROW | {"reward": 0.5, "response": "\ud83d"},
        ROW | {"answer": "3 + 4 = 7 #### 7", "response": "Cut", "finish_reason": "length"},
        "\n",
        {"prompt": chat, "completions": ["I", "You"], "rewards": [True, 0.0]},
        {"problem": "?", "completion": [{"role": "assistant", "content": None}], "choices": ["a", "b"]},
    )
    first, second, third = found.groups
    assert (first.problem.id, first.problem.answer, first.problem.kind) == ("sum", "7", "expression")
    assert [*first.responses] == [("It is 7.", True, False), ("\ufffd", None, False), ("Cut", None, True)]
    assert (second.problem.question, [one.right for one in second.responses]) == ("Who?", [True, False])
    assert (third.problem.kind, third.problem.choices) == ("choice", ("a", "b"))
    assert third.responses[0].text == ""


def test_a_line_without_responses_is_counted(read):
    found = read(ROW, {"question": "2 + 2?", "responses": []})
    assert (len(found.groups), dict(found.left_out)) == (1, {"rollouts without a reply": 1})


def test_the_index_of_a_choice_is_its_letter(read):
    cities = {"question": "Capital?", "response": "B", "choices": ["Rome", "Paris"]}
    found = [read(cities | {"answer": gold}).groups[0].problem.answer for gold in (1, "B", "Paris")]
    assert found == ["B", "B", "Paris"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"response": "x"}, "line 2: question: is missing (also possible: prompt, problem, input)"),
        (ROW | {"response": None}, "line 2: response: is missing"),
        (ROW | {"response": 7}, "line 2: response: must be a text or a list of messages, got 7"),
        (ROW | {"reward": "good"}, "line 2: reward: must be a number, got 'good'"),
        (ROW | {"answer": [7]}, "line 2: answer: must be a text or a number, got [7]"),
        (ROW | {"answer": "8", "choices": ["a"]}, "line 2, field 'answer': is none of the 1 choices"),
        (ROW | {"answer": "8"}, "line 2: answer: '8', but an earlier response has '7'"),
        (ROW | {"question": " "}, "line 2: question: is empty"),
        (ROW | {"response": ["a"], "reward": [1, 0]}, "line 2: reward: has 2 values for 1 responses"),
        ({"traces": 1}, "line 2: traces: must be a list, got 1"),
        ({"traces": [{"task": {"data": {}}, "nodes": [{}]}]}, "line 2: nodes.message: must be an object"),
        (
            {"traces": [{"task": {"data": {}}, "nodes": [SAID], "rewards": {"a": {"score": 10**400}}}]},
            "line 2: rewards: has a number that is too large",
        ),
        ("[1]\n", "line 2: line: must be an object"),
        ("{\n", "line 2: is not JSON"),
        ("[" * 100_000 + "\n", "line 2: it is nested more than"),
    ],
)
def test_an_error_names_line_and_field(read, row, words):
    with pytest.raises(DataError) as caught:
        read(ROW | {"answer": "7"}, row)
    assert words in str(caught.value)


def test_sizes_are_limited(read, tmp_path, monkeypatch):
    with pytest.raises(DataError, match="response: has 1,048,577 characters, more than 1,048,576"):
        read(ROW | {"response": "x" * (rollouts.LARGEST_TEXT + 1)})
    with pytest.raises(DataError, match=r"has no responses$"):
        read("\n")
    monkeypatch.setattr(rollouts, "LARGEST_SAMPLE", 1 << 20)
    bomb = tmp_path / "bomb.eval"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as log:
        log.writestr("samples/a_epoch_1.json", b" " * (2 << 20))
    with pytest.raises(DataError, match=r"bomb.eval, samples/a_epoch_1.json: unpacks to more than 1 MiB"):
        read_rollouts(bomb)


def test_samples_with_errors_are_left_out_and_counted(read):
    message = {"message": {"role": "assistant", "content": "4"}, "stop_reason": "max_tokens"}
    good = {"id": 1, "input": "2+2?", "target": ["4"], "output": {"choices": [message]}}
    samples = [good | {"scores": {"x": {"value": value}}} for value in ("C", "I", 1, 0.5, {"a": 1})]
    failed = [good | {"error": {}}, good | {"output": {}}]
    found = read(json.dumps({"samples": [*samples, *failed]}), name="a.json")
    assert [(one.right, one.cut) for one in found.groups[0].responses] == [
        (right, True) for right in (True, False, True, None, None)
    ]
    assert dict(found.left_out) == {"rollouts with an error": 1, "rollouts without a reply": 1}
    with pytest.raises(DataError, match=r"a.json, sample 0: output: must be an object, got 3"):
        read(json.dumps({"samples": [good | {"output": 3}]}), name="a.json")


@pytest.mark.parametrize("cut", [0.3, 0.7, 0.95])
def test_a_damaged_log_is_one_error(tmp_path, cut):
    data = (HERE / "sums.eval").read_bytes()
    for name, damaged in {"cut": data[: int(len(data) * cut)], "flipped": _flipped(data, cut)}.items():
        path = tmp_path / f"{name}.eval"
        path.write_bytes(damaged)
        assert error_of(path).startswith(str(path))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_every_damaged_byte_of_a_log_is_one_error(tmp_path, method):
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w", method) as log:
        log.writestr("samples/a_epoch_1.json", "{}")
    data = path.read_bytes()
    for at in range(4, len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :])
        assert error_of(path).startswith(str(path))


def error_of(path):
    """Return the message of the error, or the path without one. Any other error fails the test."""
    try:
        read_rollouts(path)
    except DataError as error:
        return str(error)
    return str(path)


def _flipped(data, at):
    index = int(len(data) * at)
    return data[:index] + bytes(byte ^ 255 for byte in data[index : index + 40]) + data[index + 40 :]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5) | st.just(10**400),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [*"ab", "role", "content", "message", "task", "data", "prompt", "score", "value"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["question", "response", "reward", "answer", "id", "choices", "traces", "finish_reason"]
)


@given(row=st.dictionaries(FIELDS, JSON), base=st.sampled_from([ROW, {}]), log=st.booleans())
def test_no_content_raises_anything_else(row, base, log, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / ("a.json" if log else "a.jsonl")
    sample = {"input": row.get("question"), "output": row.get("response"), "scores": row.get("reward"), **row}
    path.write_text(json.dumps({"samples": [sample]} if log else base | row))
    assert error_of(path).startswith(str(path))
