"""Did it learn: from held-out evaluations before and after, and never from too few steps."""

import json

import pytest

from debate_rl.metrics.held_out import DIRECT, JUDGE, WINNER, HeldOut, append_held_out
from debate_rl.reports.document import Judged
from debate_rl.reports.findings import findings
from debate_rl.reports.report import judge_run, learned, learning_chart, training_looks, whole_report
from debate_rl.reports.rows import Study
from debate_rl.reports.run import load_run
from debate_rl.reports.training import finals_section, sections_of


def evaluation(step, right, judge=0.9, problems=60, series=""):
    """An evaluation: of four answers to each problem so many are right; problems differ a little."""
    names = [f"p{n}" for n in range(problems)]
    figures = {
        DIRECT: {name: (float(right + n % 2), 4) for n, name in enumerate(names)},
        WINNER: {name: (float(n % 5 < right), 1) for n, name in enumerate(names)},
        JUDGE: {name: (float(n % 10 < 10 * judge), 1) for n, name in enumerate(names)},
    }
    return HeldOut(step=step, problems=dict.fromkeys(names, "a"), figures=figures, series=series)


@pytest.fixture
def evaluated(whole):
    """Return make(evaluations, folder): the run of 14 steps with these evaluations, read."""

    def make(*evaluations, at=""):
        folder = whole / at
        folder.mkdir(parents=True, exist_ok=True)
        for one in evaluations:
            append_held_out(folder / "held_out.jsonl", one)
        return load_run(whole)

    return make


def answer(run):
    found = findings([*training_looks(run, "run")])
    judged = Judged("run", Study(), ())
    return learned(judged, run, {finding.look.kind: finding for finding in found})


def test_the_first_sentence_is_held_out_before_and_after(evaluated):
    word, [first, second] = answer(evaluated(evaluation(0, 1), evaluation(14, 3)))
    assert word == "yes"
    assert first.tone == "good"
    assert first.text == (
        "Held-out accuracy of one agent alone: .38 before the first step -> .88 after 14 steps, "
        "+.50 (+.41 to +.53), 60 problems, paired."
    )
    assert second.text.startswith("Held-out winner accuracy: .20 before the first step -> .60 after 14 steps")


def test_a_loss_is_said_and_no_change_is_none(evaluated):
    assert answer(evaluated(evaluation(0, 3), evaluation(14, 1)))[0] == "no, it got worse"
    assert answer(evaluated(evaluation(14, 3)))[0] == "no clear change"


def test_a_gain_that_luck_may_make_and_one_that_does_not_matter_are_called_so(evaluated):
    one, other = evaluation(0, 1), evaluation(14, 1)
    sums = enumerate(other.figures[DIRECT].items())
    better = {name: (total + (n % 12 == 0), count) for n, (name, (total, count)) in sums}
    run = evaluated(one, HeldOut(step=14, problems=other.problems, figures=other.figures | {DIRECT: better}))
    word, [first, *_] = answer(run)
    assert (word, first.tone) == ("not sure", "")
    assert "+.02 (" in first.text


def test_figures_of_a_later_evaluation_of_all_weights_are_used(evaluated):
    assert answer(evaluated(evaluation(0, 1, series="s"), at="evaluations/a"))[0] == "unknown"
    assert answer(evaluated(evaluation(14, 3, series="s"), at="evaluations/b"))[0] == "yes"


@pytest.mark.parametrize("steps", [1, 4, 14])
def test_a_run_with_both_evaluations_never_says_that_steps_are_too_few_for_held_out(whole, evaluated, steps):
    lines = (whole / "metrics.jsonl").read_text().splitlines()[:steps]
    (whole / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    run = evaluated(evaluation(0, 1), evaluation(steps, 3))
    texts = [answer(run)[1][0].text]
    [questions] = [section for section in sections_of([run]) if section.name == "questions"]
    [q8] = [row for row in questions.parts[0].rows if row[0].text == "Q8"]
    texts.append(q8[2].text)
    assert q8[3].text == "good"
    for text in texts:
        assert "too few" not in text
        assert "0.500" in text or "+.50" in text


def test_without_two_evaluations_the_command_that_makes_them_is_named(whole):
    report = whole_report([judge_run(str(whole))], trained=[load_run(whole)])
    first, _, following = report.answers
    assert first.word == "unknown"
    assert f"debate eval {whole} --weights all" in [part.command for part in following.text]


def test_an_alarm_comes_first_with_its_command(whole):
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    lines[9]["ratio_mean"] = 21.75
    (whole / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    first = whole_report([judge_run(str(whole))], trained=[load_run(whole)]).answers[2].text[0]
    assert first.text.startswith("Alarm at step 9: ")
    assert (first.tone, first.command) == ("bad", f"debate inspect {whole} ls step:9")


def test_a_judge_that_gets_worse_on_held_out_problems_is_a_finding(evaluated):
    run = evaluated(evaluation(0, 1, judge=1.0), evaluation(14, 3, judge=0.7))
    found = findings([*training_looks(run, "run")])
    assert (found[0].look.kind, found[0].state) == ("judge/held_out", "found")
    assert found[0].paragraph().text.startswith("Judges got worse: on held-out problems 1.00 before")


def test_held_out_gains_are_paired_and_drawn(evaluated):
    run = evaluated(evaluation(0, 1), evaluation(14, 3))
    value, low, high = run.gained("eval/direct/accuracy")
    assert value == pytest.approx(0.5)
    assert high - low < 0.15  # every problem gains the same; unpaired it would be wider
    chart = learning_chart(run)
    assert [series.x for series in chart.series] == [(0.0, 14.0), (0.0, 14.0)]
    assert chart.small


def final_rows(run):
    [table] = [part for part in finals_section([run]).parts if part.name == "final/1"]
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}, table.note


def test_final_figures_have_the_first_and_the_last_evaluation_and_say_what_a_gain_is_of(evaluated):
    every = {f"p{n}": (1.0, 1) for n in range(60)}
    consistent, majority = {"direct/self_consistency": every}, {"debate/majority": every}
    votes = {JUDGE: {f"p{n}": (1.0, 1) for n in range(40, 60)}}
    first, last = evaluation(0, 1), evaluation(14, 3)
    run = evaluated(
        HeldOut(0, first.problems, first.figures | consistent),
        HeldOut(14, last.problems, last.figures | consistent | majority | votes),
    )
    rows, note = final_rows(run)
    lead = rows["debate winner minus self-consistency"]
    assert [lead[place].split()[0] for place in (0, 3, 4)] == ["-0.800", "-0.400", "0.400"]
    assert rows["debate majority"][0] == "-"  # the first evaluation has no value of it
    assert rows["debate majority"][4] == "one evaluation"
    assert "The difference of judge accuracy is on the 20 problems with a value in both" in note
    assert note.count("with a value in both; every") == 1
