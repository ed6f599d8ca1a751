"""What a row of a file, or of a data set, has to learn, and what is wrong with one that has nothing."""

import re
from collections import Counter
from itertools import groupby

import pytest

from debate.programs import output_spans
from debate.types import Message
from debate_rl.config import Config
from debate_rl.sft.examples import Source, example_of_set, examples_of
from envs.data.catalog import DATA_SETS
from envs.data.records import Record
from envs.errors import DataError
from envs.families import FAMILIES
from envs.grading.extraction import last_box

USER = {"role": "user", "content": "1 + 1?"}
SAID = {"role": "assistant", "content": "2"}
ONE_MODEL = Config(model={"name_or_path": "m"})


def read(**row):
    return list(examples_of(Record("f.jsonl, line 1", 0, row, {})))


def test_a_reply_is_learnt_as_it_is_written():
    [example] = read(question="1 + 1?", reply=" It is\n2. ", level=3, id="p1", answer=2)
    assert (example.reply, example.solution, example.messages) == (" It is\n2. ", None, ())
    assert (example.problem.id, example.problem.level, example.problem.answer) == ("p1", "3", "2")


@pytest.mark.parametrize("row", [{"answer": "2"}, {"solution": r"So it is \boxed{ 2 }."}])
def test_a_solution_is_kept_apart_from_the_form_of_a_reply(row):
    [example] = read(**{"problem": "1 + 1?", "solution": "Count."} | row)
    assert (example.reply, example.solution.answer) == ("", "2")


def test_a_chat_has_an_example_for_each_thing_that_was_said():
    first, second = read(messages=[USER, SAID, {"role": "user", "content": "And 3?"}, SAID])
    assert (first.messages, first.reply) == ((Message("user", "1 + 1?"),), "2")
    assert [message.role for message in second.messages] == ["user", "assistant", "user"]
    assert second.problem.question == "And 3?"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "1?"}, r"f.jsonl, line 1, field 'reply': is missing"),
        ({"question": "1?", "reply": 3}, r"'reply': is empty or not text.*3"),
        ({"question": "1?", "reply": "2", "grade": "wrong"}, r"'grade': is not 'right'"),
        ({"messages": "hi"}, r"'messages': is not a list"),
        ({"messages": [USER, {"role": "assistant"}]}, r"'messages\[1\]': needs a role .* and a content"),
    ],
)
def test_a_row_with_nothing_to_learn_is_refused(row, message):
    with pytest.raises(DataError, match=message):
        read(**row)


def of_set(name, **row):
    return example_of_set(DATA_SETS[name], Record("hub, row 0", 0, row, {}), "train")


def test_openr1_math_has_the_first_generation_that_was_verified():
    generations = {"generations": ["cut", "wrong", "good \\boxed{2}", "late"]}
    flags = {"correctness_math_verify": [True, False, True, True]}
    flags |= {"is_reasoning_complete": [False, True, True, True]}
    example = of_set("openr1_math", problem="1 + 1?", answer="2", **generations, **flags)
    assert example.text == "good \\boxed{2}"
    flags["correctness_math_verify"] = [False] * 4
    with pytest.raises(DataError, match="'generations': has"):
        of_set("openr1_math", problem="1 + 1?", answer="2", **generations, **flags)


@pytest.mark.parametrize(
    ("name", "row", "text", "answer"),
    [
        ("numinamath_cot", {"problem": "?", "solution": r"Is \boxed{2}"}, r"Is \boxed{2}", "2"),
        ("numinamath_tir", {"problem": "?", "solution": r"```output"}, None, None),
        ("openmathreasoning", {"problem": "?", "generated_solution": "S", "expected_answer": "5"}, "S", "5"),
        ("gsm8k", {"question": "?", "answer": "1 + 1 = <<1+1=2>>2\n#### 2"}, "1 + 1 = 2", "2"),
    ],
)
def test_a_set_has_its_written_solutions(name, row, text, answer):
    if text is None:
        with pytest.raises(DataError, match="box"):
            of_set(name, **row)
        return
    example = of_set(name, **row)
    assert (example.text, example.solution and example.solution.answer) == (text, answer)


def test_a_solution_with_tools_of_numinamath_keeps_its_programs_and_their_output():
    solution = "Add.\n\n```python\nprint(1 + 1)\n```\n```output\n2\n```\nIt is \\boxed{2}."
    chat = [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": solution}]
    example = of_set("numinamath_tir", problem="1 + 1?", solution=solution, messages=chat)
    assert (example.text, example.solution.answer) == (solution, "2")
    [said] = read(messages=chat)
    assert said.reply == solution


def test_programs_of_openmathreasoning_stand_in_fences_as_those_that_run_do():
    written = (
        "Add.\n<tool_call>\nprint(1 + 1)\n</tool_call>\n```output\n2\n```\nIt is \\boxed{2}. <tool_call>"
    )
    example = of_set("openmathreasoning", problem="?", generated_solution=written, expected_answer="2")
    assert example.text == (
        "Add.\n```python\nprint(1 + 1)\n```\n```output\n2\n```\nIt is \\boxed{2}. <tool_call>"
    )
    assert [span.of(example.text) for span in output_spans(example.text)] == ["```output\n2\n```\n"]


@pytest.mark.parametrize("name", ["products", "products_tir"])
def test_right_solutions_of_a_synthetic_family_are_learnt_by_name(name):
    source, limits = Source(name, ONE_MODEL), {"split": "train", "limit": 20, "seed": 3, "levels": [1]}
    examples = list(source.read(**limits))
    assert len({example.problem.id for example in examples}) == 20
    for example in examples:
        assert example.text.endswith(f"\\boxed{{{example.problem.answer}}}")
        assert example.problem.level == "1"
        printed = [f"```output\n{example.problem.answer}\n```\n"] * name.endswith("_tir")
        assert [span.of(example.text) for span in output_spans(example.text)] == printed
    assert examples == list(Source(name, ONE_MODEL).read(**limits))


def test_scripted_debates_show_wrong_solutions_but_teach_right_ones():
    debate = {"num_rounds": 2, "prompts": "small"}
    config = Config(model={"name_or_path": "m"}, env={"kind": "words"}, debate=debate)
    examples = list(Source("words_debates", config).read(split="train", limit=12, seed=3, levels=[2]))
    assert [len(list(turns)) for _, turns in groupby(examples, lambda one: one.problem)] == [3] * 12
    family, shown = FAMILIES["words"], Counter[bool]()
    for example in examples:
        box = last_box(example.reply.partition("<evaluation>")[0])
        assert box is None or family.is_right(example.problem, box.of(example.reply))
        for text in re.findall(r"boxed\{ (\d+)\}", example.messages[-1].content):
            shown[family.is_right(example.problem, text)] += 1
    assert min(shown[True], shown[False]) > 10
