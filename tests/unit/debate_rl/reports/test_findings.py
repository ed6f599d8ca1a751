"""What a page states: with cases enough, of a size that matters, and not by the luck of many looks."""

from dataclasses import replace

import pytest

from debate_rl.metrics.intervals import Estimate, difference
from debate_rl.reports.document import Judged
from debate_rl.reports.figures import figures_of, pair_rows
from debate_rl.reports.findings import KINDS, Look, findings, judgment_looks
from debate_rl.reports.report import answers, whole_report
from debate_rl.reports.rows import Study
from transcripts import compile_filter

from .conftest import judged, vote_on


def look(kind="bias/position", value=0.1, p=0.001, cases=100, problems=50):
    reach = abs(value) * (0.5 if p < 0.05 else 1.5)
    estimate = Estimate(value, value - reach, value + reach, cases, problems, p)
    return Look(kind, "run", estimate, cases, problems, "so and so")


def stated(*looks):
    return [finding.look.kind for finding in findings(looks) if finding.state == "found"]


@pytest.mark.parametrize(
    ("about", "state"),
    [
        ({}, "found"),
        ({"cases": 29}, "too few"),
        ({"problems": 9}, "too few"),
        ({"cases": 1, "problems": 1, "value": 0.5}, "too few"),
        ({"value": 0.017}, "nothing found"),  # for sure, and too small to matter
        ({"value": -0.1}, "found"),
        ({"p": 0.021}, "nothing found"),
    ],
)
def test_a_finding_has_cases_size_and_no_luck(about, state):
    [finding] = findings([look(**about)])
    assert finding.state == state
    assert (finding.tone == "warn") == (state == "found")


def test_one_in_a_hundred_is_a_finding_alone_and_none_among_nine():
    assert stated(look(p=0.01)) == ["bias/position"]
    others = [look(kind, p=0.5) for kind in [*KINDS][:8] if kind != "bias/position"]
    assert stated(look(p=0.01), *others) == []


def test_what_is_not_sure_says_so():
    sure, unsure = look(p=0.0001), look("bias/length", p=0.03)
    every = findings([unsure, sure, look("flip/net", p=0.5)])
    found = {finding.look.kind: finding.paragraph().text for finding in every}
    assert found["bias/position"] == "Judges prefer the solution shown first: so and so."
    assert "Not sure: so and so; without a real difference, 6% of reports show" in found["bias/length"]
    assert found["flip/net"] == "No clear difference: so and so."


def votes(rights, step=0):
    """Debates of a step with one decidable vote each, on problems of their own."""
    return [vote_on(right, f"p{step}.{number}", step=step) for number, right in enumerate(rights)]


def of_rates(*rates):
    """A run of a step for each rate, of a hundred debates."""
    steps = (votes([n < 100 * rate for n in range(100)], step) for step, rate in enumerate(rates))
    return judged([debate for debates in steps for debate in debates])


def test_a_judge_that_gets_worse_is_the_first_finding_and_the_first_sentence():
    run = of_rates(0.98, 0.94, 0.87, 0.79)
    found = [finding for finding in findings([*judgment_looks(run)]) if finding.state == "found"]
    assert found[0].look.kind == "judge/change"
    text = "right in 98.0% of 100 votes in step 0, in 79.0% of 100 in step 3, -19.0 points"
    assert found[0].paragraph().text.startswith(f"Judges got worse: {text}")
    assert found[0].look.behind.filter == "step:3..3 vote:wrong"
    report = whole_report([run])
    learned, judge, following = report.answers
    assert judge.word == "better than chance, and getting worse"
    assert judge.text[0].text.startswith("Judges got worse: ")
    assert (judge.tone, following.tone) == ("bad", "bad")
    assert following.text[0].command == "debate inspect run ls 'step:3..3 vote:wrong'"
    assert learned.word == "unknown"


LISTED, MADE_UP, MISSES = "2 3", "1 4", "2 6"
"""Right, and two kinds of wrong, for a target of 5 among 2 3 6."""


def of_faults(make_debate, rates, count=60):
    """A run of one decidable vote a debate: ``rates`` has how often it is right, by the wrong answer."""
    about = {"question": "Target 5. Numbers 2 3 6.", "source": "pair_sum"}

    def debate(wrong, rate, number):
        vote = (2, 1, 0, 1, "left" if number < rate * count else "right")
        answers = [[LISTED], [wrong], [None]]
        return make_debate([vote], [[True], [False], [False]], answers, problem=f"{wrong}.{number}", **about)

    return judged(debate(*how, number) for how in rates.items() for number in range(count))


def faults(run):
    return [one for one in findings([*judgment_looks(run)]) if one.look.kind.endswith("_fault")]


def test_a_kind_of_fault_that_judges_do_not_see_is_red_on_the_first_screen(make_debate):
    run = of_faults(make_debate, {MADE_UP: 0.5, MISSES: 0.95})
    [found] = faults(run)
    assert (found.look.kind, found.state, found.tone) == ("judge/blind_fault", "found", "bad")
    text = "a number that is not listed (50.0% of the votes on decidable pairs); 50.0% "
    assert found.look.detail.startswith(text)
    assert "of these are right, and 95.0% of all other votes, -45.0 points" in found.look.detail
    judge, following = whole_report([run]).answers[1:]
    assert (judge.word, judge.tone) == ("better than chance, but not on one kind of fault", "bad")
    assert judge.text[0].text.startswith("Judges are blind to one kind of fault: a number that is not listed")
    assert following.text[0].text.startswith("Judges are blind to one kind of fault: read votes on")


def test_a_fault_that_judges_see_less_often_than_others_is_amber(make_debate):
    run = of_faults(make_debate, {MADE_UP: 0.7, MISSES: 0.95})
    [found] = faults(run)
    assert (found.look.kind, found.tone) == ("judge/weak_fault", "warn")
    judge = whole_report([run]).answers[1]
    assert (judge.word, judge.tone) == ("better than chance, but less on one kind of fault", "warn")


@pytest.mark.parametrize(
    "rates", [{MADE_UP: 0.85, MISSES: 0.9}, {MADE_UP: 0.9}, {MADE_UP: 0.5, MISSES: 0.55}, {}]
)
def test_faults_that_judges_see_alike_are_no_finding(make_debate, rates):
    undecidable = make_debate([(2, 1, 0, 1, "left")], [[True], [True], [False]], [["4"], ["5"], ["6"]])
    run = of_faults(make_debate, rates) if rates else judged([undecidable])
    [found] = faults(run)
    assert found.state in ("nothing found", "too few")
    assert "fault" not in whole_report([run]).answers[1].word


def test_the_worst_of_several_kinds_pays_for_having_been_chosen(make_debate):
    run = of_faults(make_debate, {MADE_UP: 0.8, MISSES: 0.95})
    [look] = [look for look in judgment_looks(run) if look.kind.endswith("_fault")]
    rows, table = pair_rows(run.study)["judge/accuracy"], run.study.pairs
    made_up = table["fault"][table["better"] != 0] == run.study.faults["a number that is not listed"]
    cast = rows.of(rows.counted)
    alone = difference(cast.values, made_up[rows.counted], cast.clusters)
    assert look.estimate.p == pytest.approx(2 * alone.p)  # two kinds were looked at


def test_the_debates_with_such_faults_are_named():
    study = Study()
    for number, debate in enumerate(votes([n % 2 == 0 for n in range(40)])):
        study.add(debate, f"0.{number}")
    looks = judgment_looks(Judged("run", study, figures_of(study)))
    [look] = [one for one in looks if one.kind.endswith("_fault")]
    assert look.behind.filter == " OR ".join(f"id:0.{number}" for number in range(1, 40, 2))
    compile_filter(look.behind.filter)


def test_a_fall_that_is_not_sure_is_amber():
    run = of_rates(0.97, 0.95, 0.93, 0.9)
    [change] = [one for one in findings([*judgment_looks(run)]) if one.look.kind == "judge/change"]
    assert change.doubt == "not sure"
    judge = whole_report([run]).answers[1]
    assert (judge.word, judge.tone) == ("better than chance, and possibly getting worse", "warn")
    assert judge.text[0].text.startswith("Not sure: right in 97.0%")


def test_a_fall_in_training_that_is_not_sure_is_amber_although_held_out_problems_show_none():
    run = of_rates(0.97, 0.95, 0.93, 0.9)
    [fall] = [one for one in judgment_looks(run) if one.kind == "judge/change"]
    same = replace(fall, kind="judge/held_out", estimate=Estimate(0.0, -0.1, 0.1, 300, 100, p=1.0))
    found = findings([*judgment_looks(run), same])
    judge = answers([run], {}, found)[1]
    assert (judge.word, judge.tone) == ("better than chance, and possibly getting worse", "warn")


def test_several_runs_have_a_line_each():
    runs = [of_rates(0.9, 0.9), replace(of_rates(0.98, 0.7), run="other")]
    found = findings([look for run in runs for look in judgment_looks(run)])
    learned, judge, following = answers(runs, {}, found)
    assert [part.text.partition(":")[0] for part in judge.text] == ["run", "other"]
    assert judge.text[1].text.startswith("other: better than chance, and getting worse. Judges got worse: ")
    assert len(learned.text) == len(following.text) == 2
