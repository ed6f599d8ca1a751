"""Stored replies graded again, as they were sampled and cut at stop strings, against numbers by hand."""

from dataclasses import replace

import pytest

from debate import Completion, Debate, DebateConfig, Persona, Problem, Turn
from debate.parsing import parse_turn
from debate.types import TurnId
from debate_rl.replay import regrading
from debate_rl.replay.regrading import gains_of, lines_of, modes_named, regrade, sources_of, stops_of
from envs.families import FAMILIES
from transcripts import Record, write_step

STOPS = ("Question:", "Q:")
ALONE = DebateConfig(num_agents=1, num_rounds=1)
GSM8K = {"source": "gsm8k", "kind": "number"}
PROBLEMS = [Problem(f"p{i}", f"What is 10 + {i}?", answer=f"{10 + i}", **GSM8K) for i in range(4)]
RIGHT, WRONG, ENDLESS = "It is {}.", "It is 99.", "It is {}.\n\nQuestion: Tom has 3?"
BASE = [(ENDLESS, ENDLESS), (ENDLESS, RIGHT), (WRONG, ENDLESS), (WRONG, WRONG)]
TRAINED = [(RIGHT, RIGHT)] * 3 + [(WRONG, WRONG)]


def record_of(problem, text, correct=True, *, step=0, protocol=ALONE, in_thinking=False):
    parsed = parse_turn(text, handles=(), own=None, due=False, in_thinking=in_thinking)
    said = Completion((), (), (), text, "stop", 0)
    turn = Turn(TurnId(0, 0), "K7", (), said, parsed)
    debate = Debate(problem, (Persona("one", "Solve."),), (turn,), (), step, 0, protocol)
    return Record(debate, step, problem.id, None if correct is None else ((correct,),))


def test_the_stop_strings_of_a_family_may_cut(tmp_path):
    asked = ALONE.model_copy(update={"prompts": "qa"})
    record = record_of(PROBLEMS[0], "It is 10.\n\n\nIt is 7.", protocol=asked)
    write_step(tmp_path / "direct", 0, [record])
    [source] = sources_of(mark(tmp_path))
    for clip in ("family", "family:qa"):
        [sheet] = regrade(source, ("lenient",), stops_of(clip))
        assert [sheet.flat(name, "lenient")[0] for name in ("sampled", "clipped", "cut")] == [[0], [1], [1]]
    with pytest.raises(ValueError, match="--clip family:tiny: the prompt set tiny has no stop strings"):
        regrade(source, ("lenient",), stops_of("family:tiny"))


def values(line, *names):
    return tuple(line[name].value for name in names)


def write_evaluation(folder, replies, part="self-consistency"):
    every = [(p, text) for p, texts in zip(PROBLEMS, replies, strict=True) for text in texts]
    records = [record_of(p, text.format(p.answer), text == RIGHT) for p, text in every]
    write_step(folder / part, 0, records)
    return mark(folder)


def mark(folder):
    """Make a folder that of an evaluation."""
    (folder / "evaluation.json").write_text('{"of": {}}')
    return folder


@pytest.fixture
def evaluations(tmp_path):
    """A base model that goes on with questions of its own, and one that learned to stop and one sum more."""
    write_evaluation(tmp_path / "evaluations/model-1", BASE)
    write_evaluation(tmp_path / "evaluations/step_000009-1", TRAINED)
    return tmp_path / "evaluations"


def sheets_of(path, modes=("lenient",), stops=STOPS):
    return [sheet for one in sources_of(path) for sheet in regrade(one, modes_named(modes), lambda _: stops)]


def test_as_sampled_stands_beside_clipped(evaluations):
    base, trained = sheets_of(evaluations)
    stored, lenient = lines_of(base, clip=True)
    assert (base.source, base.part) == ("model-1", "direct")
    assert (lenient["replies"], lenient["problems"]) == (8, 4)
    assert stored["mode"] == regrading.STORED
    # where it goes on, 3 is the last number
    assert stored["sampled"].value == lenient["sampled"].value == 1 / 8
    assert values(lenient, "clipped", "moved", "cut", "changed", "differs") == (5 / 8, 4 / 8, 4 / 8, 4 / 8, 0)
    _, after = lines_of(trained, clip=True)
    assert values(after, "sampled", "clipped", "cut") == (6 / 8, 6 / 8, 0)


def test_of_a_gain_the_part_that_is_stopping_is_told(evaluations):
    [gain] = gains_of(sheets_of(evaluations))
    assert (gain["source"], gain["base"], gain["paired"]) == ("step_000009-1", "model-1", True)
    assert values(gain, "sampled", "clipped", "stopping") == (5 / 8, 1 / 8, 4 / 8)
    # by problem the gains are 1, 1/2, 1, 0: a mean of 5/8, variance 11/48, SE sqrt(11/48 / 4), t(3) = 3.1824
    assert gain["sampled"].high - gain["sampled"].value == pytest.approx(3.1824463 * (11 / 192) ** 0.5)


def test_a_gain_is_over_an_evaluation_of_the_same_problems(evaluations):
    base, trained = sheets_of(evaluations)
    other = replace(base, source="start-1", problems={"other": next(iter(base.problems.values()))})
    [gain] = gains_of([other, base, trained])
    assert (gain["source"], gain["base"]) == ("step_000009-1", "model-1")
    assert not list(gains_of([other, base]))


def test_a_mode_that_finds_nothing_grades_nothing_as_right(evaluations):
    base, _ = sheets_of(evaluations, ("boxed", "gsm8k_flexible_extract"))
    lines = {line["mode"]: line for line in lines_of(base, clip=True)}
    assert lines["boxed"]["sampled"].value == lines["boxed"]["clipped"].value == 0
    assert lines["boxed"]["differs"].value == 1 / 8
    assert lines["gsm8k_flexible_extract"]["sampled"].value == 5 / 8  # that harness stops there itself


def test_without_stop_strings_nothing_is_cut(evaluations):
    base, trained = sheets_of(evaluations, stops=())
    assert not any(sheet.share("cut", "lenient").value for sheet in (base, trained))
    _, line = lines_of(base, clip=False)
    assert (line["clipped"], line["moved"], line["cut"]) == (None, None, None)
    assert regrading.table_of([line], clip=False)[0][-2:] == ["as sampled", "not as stored"]


def test_a_stop_string_within_thinking_does_not_cut(tmp_path):
    text = "<think>Q: 4?</think>The answer is {0}. Q: 5? The answer is 6."
    write_evaluation(tmp_path, [(text,)] * 4)
    [sheet] = sheets_of(tmp_path, ("answer_is",))
    _, line = lines_of(sheet, clip=True)
    assert values(line, "sampled", "clipped") == (0, 1)


def test_a_reply_whose_prompt_opened_thinking_and_never_ends_it_has_no_answer(tmp_path):
    record = record_of(PROBLEMS[0], "It may be 10. Q: 5?", False, in_thinking=True)
    write_step(tmp_path / "debates", 0, [record])
    [sheet] = sheets_of(mark(tmp_path))
    _, line = lines_of(sheet, clip=True)
    assert values(line, "sampled", "clipped", "cut") == (0, 0, 0)


def test_a_solution_in_tags_is_graded_alone_and_one_that_is_cut_is_read_to_its_end(tmp_path):
    text = "Is it 7?<solution>It is {0}. Q: 5?</solution> 8"
    write_evaluation(tmp_path, [(text,)] * 4)
    _, line = lines_of(sheets_of(tmp_path)[0], clip=True)
    assert values(line, "sampled", "clipped") == (0, 1)


def test_a_reply_without_tags_is_no_solution_where_others_read_it(tmp_path):
    debaters = DebateConfig(num_agents=2, num_rounds=2)
    for name, protocol in (("alone", ALONE), ("read", debaters)):
        record = record_of(PROBLEMS[0], "It is 10.", protocol=protocol)
        [(_, reply)] = regrading.replies_of("direct", record)
        found = regrading.graded(PROBLEMS[0], regrading.read_again(reply), "lenient")
        assert found == (True if name == "alone" else "missing")


def test_problems_of_a_family_are_graded_by_it(tmp_path):
    problem = FAMILIES["pair_sum"].problems(split="train", limit=1, seed=0)[0]
    turned = " ".join(reversed(problem.answer.split()))
    assert turned != problem.answer  # which a data set's grader does not take
    write_step(tmp_path / "debates", 0, [record_of(problem, rf"\boxed{{{turned}}}")])
    _, line = lines_of(sheets_of(mark(tmp_path), ("boxed",))[0], clip=False)
    assert (line["sampled"].value, line["differs"].value) == (1, 0)


def test_the_mode_of_the_stored_grades_is_known(tmp_path, evaluations):
    graded_by = [regrading.stored_mode_of(source) for source in sources_of(evaluations)]
    assert graded_by == ["boxed", "boxed"]
    record = replace(record_of(PROBLEMS[0], "It is 10."), mode="math_verify")
    write_step(tmp_path / "one/debates", 0, [record])
    assert regrading.stored_mode_of(sources_of(mark(tmp_path / "one"))[0]) == "math_verify"


def test_open_problems_are_left_out_and_counted(tmp_path):
    problem = Problem("o", "Write a story.", kind="open")
    write_step(tmp_path / "debates", 0, [record_of(problem, "Once.", None), record_of(PROBLEMS[0], "10")])
    [sheet] = sheets_of(mark(tmp_path))
    assert (sheet.open, [*sheet.problems]) == (1, ["p0"])


def test_early_and_late_steps_of_training_are_apart_and_not_paired(tmp_path):
    for step in range(6):
        texts = [RIGHT if step > 1 else ENDLESS] * 2
        records = [record_of(p, t.format(p.answer), step=step) for p, t in zip(PROBLEMS, texts, strict=False)]
        write_step(tmp_path / "transcripts", step, records)
    early, late = sheets_of(tmp_path)
    assert (early.source, late.source) == ("steps 0..1", "steps 4..5")
    [gain] = gains_of([early, late])
    assert (gain["sampled"].value, gain["clipped"].value, gain["paired"]) == (1, 0, False)
    [middle] = sources_of(tmp_path, steps=(2, 3))
    assert middle.name == "steps 2..3"
    with pytest.raises(ValueError, match="no debates of these steps"):
        sources_of(tmp_path, steps=(7, None))


def test_what_cannot_be_graded_is_one_line(tmp_path, evaluations):
    with pytest.raises(ValueError, match=r"neither a run nor the folder of an evaluation"):
        sources_of(tmp_path / "nothing")
    with pytest.raises(ValueError, match="--modes nice: unknown"):
        modes_named(["nice"])
    with pytest.raises(ValueError, match="first_letter: works only for multiple choice"):
        sheets_of(evaluations, ("first_letter",))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no replies"):
        sources_of(mark(tmp_path / "empty"))
