"""What a page states: with cases enough, of a size that matters, and not by the luck of many looks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import debate_rl
from debate_rl.reports.answers import answers
from debate_rl.reports.cells import Judged
from debate_rl.reports.figures import figures_of, gather
from debate_rl.reports.findings import Look, findings
from debate_rl.reports.judgment.looks import judgment_looks
from debate_rl.reports.kinds import KINDS
from debate_rl.reports.report import whole_report
from debate_rl.statistics import Estimate

DOCS = Path(debate_rl.__file__).parents[1] / "docs"


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


def test_looks_without_cases_enough_are_not_counted_among_the_many():
    others = [look(kind, p=0.5, cases=3) for kind in [*KINDS][:8] if kind != "bias/position"]
    assert stated(look(p=0.01), *others) == ["bias/position"]


def test_what_is_not_sure_says_so():
    sure, unsure = look(p=0.0001), look("bias/length", p=0.03)
    found = {
        finding.look.kind: finding.paragraph().text
        for finding in findings([unsure, sure, look("flip/net", p=0.5)])
    }
    assert found["bias/position"] == "Judges prefer the solution shown first: so and so."
    assert found["bias/length"].startswith(
        "Not sure: so and so; of all that this page looks for, luck finds as much"
    )
    assert found["flip/net"] == "No difference can be told: so and so."


def votes(make_debate, rights, step=0, problem="p", first=None):
    """Debates of a step with one decidable vote each, problems of their own; ``first``: an equal pair's."""
    for number, right in enumerate(rights):
        outcomes = [(2, 1, 0, 1, "left" if right else "right")]
        correct = [[True], [False], [False]]
        if first is not None:
            correct = [[True], [True], [False]]
            outcomes = [(2, 1, 0, 1, "left" if first[number] else "right")]
        yield make_debate(
            outcomes, correct, [["4"], ["5"], ["6"]], step=step, problem=f"{problem}{step}.{number}"
        )


def judged(debates):
    study = gather(debates)
    return Judged("run", study, figures_of(study))


def of_rates(make_debate, *rates):
    """A run of a step for each rate, of a hundred debates."""
    return judged(
        debate
        for step, rate in enumerate(rates)
        for debate in votes(make_debate, [n < 100 * rate for n in range(100)], step)
    )


def test_a_judge_that_gets_worse_is_the_first_finding_and_the_first_sentence(make_debate):
    run = of_rates(make_debate, 0.98, 0.94, 0.87, 0.79)
    found = [finding for finding in findings([*judgment_looks(run)]) if finding.state == "found"]
    assert found[0].look.kind == "judge/change"
    text = "right in 98.0% of 100 votes in step 0, in 79.0% of 100 in step 3, -19.0 points"
    assert found[0].paragraph().text.startswith(f"Judges got worse: {text}")
    assert found[0].look.behind.filter == "step:3..3 judge.accuracy:<0.5"
    report = whole_report([run])
    learned, judge, following = report.answers
    assert judge.word == "better than a coin, and getting worse"
    assert judge.text[0].text.startswith("Judges got worse: ")
    assert (judge.tone, following.tone) == ("bad", "bad")
    assert following.text[0].command == "debate inspect run ls 'step:3..3 judge.accuracy:<0.5'"
    assert learned.word == "not known"


def test_a_judge_that_stays_as_it_is_gets_no_warning(make_debate):
    run = of_rates(make_debate, 0.9, 0.86, 0.88, 0.88)
    judge = whole_report([run]).answers[1]
    assert (judge.word, judge.tone) == ("better than a coin", "good")
    assert judge.text[1].text.startswith("No difference can be told: right in 90.0% of 100 votes")


def test_a_judge_worse_than_a_coin_is_not_trusted(make_debate):
    judge = whole_report([of_rates(make_debate, 0.3, 0.3)]).answers[1]
    assert (judge.word, judge.tone) == ("no", "bad")


def test_few_votes_say_that_they_are_few(make_debate):
    judge = whole_report([judged(votes(make_debate, [True] * 8))]).answers[1]
    assert judge.word == "too few votes to tell"
    assert judge.text[1].text == "Whether that changes cannot be told: all votes are of one step."


def test_one_vote_for_the_first_is_no_preference(make_debate):
    run = judged(votes(make_debate, [True], first=[True]))
    assert {finding.state for finding in findings([*judgment_looks(run)])} == {"too few"}
    many = judged(votes(make_debate, [True] * 60, first=[True] * 60))
    assert "bias/position" in {f.look.kind for f in findings([*judgment_looks(many)]) if f.state == "found"}


def test_several_runs_have_a_line_each(make_debate):
    runs = [of_rates(make_debate, 0.9, 0.9), Judged("other", *vars_of(of_rates(make_debate, 0.98, 0.7)))]
    learned, judge, following = answers(
        runs, {}, findings([look for run in runs for look in judgment_looks(run)])
    )
    assert [part.text.partition(":")[0] for part in judge.text] == ["run", "other"]
    assert judge.text[1].text.startswith("other: better than a coin, and getting worse. Judges got worse: ")
    assert len(learned.text) == len(following.text) == 2


def vars_of(run):
    return run.study, run.figures


def test_the_page_of_the_kinds_says_the_same():
    text = (DOCS / "report.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+/[a-z_]+)` \| (.+?) \| (\d+), (\d+) \| ([0-9.]+) \|$", text, re.M)
    told = [
        (kind.name, kind.what, str(kind.cases), str(kind.problems), f"{kind.size:g}")
        for kind in KINDS.values()
    ]
    assert rows == told
