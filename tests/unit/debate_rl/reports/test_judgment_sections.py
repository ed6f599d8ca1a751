"""What a report says of two debates that were written by hand."""

import pytest

from debate_rl.reports.document import Chart, Judged, Table
from debate_rl.reports.judgment import by_hand_sections, comparison_section, difference, judgment_sections
from debate_rl.reports.report import whole_report
from debate_rl.reports.rows import Study

from .conftest import judged, vote_on


def tables(sections):
    return {part.name: part for section in sections for part in section.parts if isinstance(part, Table)}


def column(table, name):
    place = table.columns.index(name)
    return {row[0].text: row[place] for row in table.rows}


@pytest.fixture
def one(ordered, circular):
    return judged([ordered, circular], "runs/a")


def test_every_figure_is_in_a_table(one):
    found = tables(judgment_sections(one, ()))
    shown = sum(len(table.rows) for name, table in found.items() if not name.startswith(("by-", "looks")))
    grouped = [figure for figure in one.figures if figure.name.count("/") > 1 and "judge/" in figure.name]
    assert shown == len(one.figures) - len(grouped)
    assert sum(len(found[name].rows) for name in found if name.startswith("by-")) == len(grouped) / 3


def test_numbers_intervals_and_debates(one):
    table = tables(judgment_sections(one, ()))["accuracy"]
    # right, wrong, and a tie on pairs with one right side; of p2 no pair of round 0, one due in the ballot
    assert column(table, "estimate")["accuracy"].text == "0.333"
    assert column(table, "n")["accuracy"].value == 3
    behind = column(table, "estimate")["accuracy"].behind
    assert (behind.run, behind.filter) == ("runs/a", "judge.accuracy:>=0")
    assert column(table, "95% interval")["accuracy"].text == "none"  # one problem alone
    assert column(table, "estimate")["strict accuracy"].behind is None


def test_what_has_no_value_says_why(one):
    swaps = tables(judgment_sections(one, ()))["swaps"]
    assert column(swaps, "estimate")["consistency"].text == "none"
    assert column(swaps, "meaning")["consistency"].text.endswith(
        '. No value: no pair was shown in both orders: set debate.order = "per_viewer"'
    )


def test_rounds_and_agents_count_from_zero(one):
    found = tables(judgment_sections(one, ()))
    assert set(column(found["by-round"], "accuracy")) == {"round 1", "final ballot"}
    parts = (part for section in judgment_sections(one, ()) for part in section.parts)
    [chart] = [part for part in parts if isinstance(part, Chart) and part.name == "accuracy-by-round"]
    assert chart.ticks == ("round 1", "final ballot")
    assert set(column(found["by-agent"], "accuracy")) <= {"agent 0", "agent 1", "agent 2"}


def test_a_filter_of_the_report_is_in_every_filter(ordered, circular):
    found = judged([ordered, circular], "runs/a", filter="step:0 OR step:100")
    parts = [part for section in judgment_sections(found, ()) for part in section.parts]
    cells = [cell for part in parts if isinstance(part, Table) for row in part.rows for cell in row]
    behind = [one.behind for one in (*cells, *(part for part in parts if isinstance(part, Chart)))]
    filters = [one.filter for one in behind if one is not None]
    assert len(filters) > 20
    assert all(filter.startswith("(step:0 OR step:100) ") for filter in filters)


def votes(rights, problems):
    """A debate of one decidable vote for each; True votes for the right side."""
    return list(map(vote_on, rights, problems))


def test_differences_are_paired_by_problem():
    """Half of the problems right in both runs, half wrong in both: no difference, and no doubt about it."""
    rights, problems = [True, False] * 10, [f"p{n}" for n in range(20)]
    one, other = (Study(votes(rights, problems)) for _ in range(2))
    same = difference(one, other, "judge/accuracy")
    assert (same.value, same.n, same.clusters) == (0.0, 40, 20)
    apart = Study(votes(rights, [f"q{n}" for n in range(20)]))
    unpaired = difference(one, apart, "judge/accuracy")
    # two means of 20 with variance 1/4: sqrt(2 * 1/80) with the factor 20 / 19, on 38 degrees of freedom
    assert unpaired.clusters == 40
    assert unpaired.high == pytest.approx(2.0244 * (2 / 80 * 20 / 19) ** 0.5, abs=1e-3)
    better = Study(votes([True] * 10 + [True, False] * 5, problems))
    assert difference(better, one, "judge/accuracy").value == pytest.approx(0.25)


def test_runs_side_by_side():
    problems = [f"p{n}" for n in range(8)]
    first = judged(votes([True, False] * 4, problems), "runs/a")
    second = judged(votes([True] * 7 + [False], [*problems[:4], "x", "y", "z", "w"]), "runs/b")
    [table] = comparison_section([first, second]).parts
    assert table.columns == ("figure", "runs/a", "runs/b", "minus the first run")
    assert column(table, "runs/b")["judge/accuracy"].text == "0.875"
    told = column(table, "minus the first run")
    assert told["judge/accuracy"].value == pytest.approx(0.375)
    assert told["judge/accuracy"].text.startswith("0.375 [")
    assert told["winner/correlation"].text == "-"
    assert table.note.startswith("Problems shared with the first run: 4.")
    report = whole_report([first, second])
    names = [section.name for section in report.sections]
    assert names[0] == "comparison"
    assert len(names) == len(set(names))
    assert {"run-1-winner", "run-2-winner"} <= set(names)


def label(id, value, problem, gold, votes=(None, None, None), **more):
    sides = dict(zip(("left_votes", "tie_votes", "right_votes"), votes, strict=True))
    return (
        {"kind": "label", "id": id, "value": value, "problem": problem, "gold": gold, "stale": False}
        | sides
        | more
    )


def test_labels_by_hand_are_compared_with_votes_and_gold():
    rows = [
        label("0.0/0.0-1.0", "left", "a", "left", (2, 0, 1)),
        label("0.1/0.0-1.0", "tie", "b", "right", (0, 1, 0)),
        label("0.2/0.0-1.0", "right", "c", None, (1, 1, 1)),
        label("0.3/0.0-1.0", "right", "c", "right", (0, 0, 1), stale=True),
        label("0.0/0.0", "wrong", "a", "missing"),
        label("0.1/0.0", "right", "b", "wrong"),
        label("0.2/0.0", "right", "c", "ungraded"),
        label("0.2", "right", "c", None),
        label("0.2/1.0", "yes", "c", "right", kind="star"),
    ]
    [section] = by_hand_sections(Judged("run", Study(), (), by_hand=rows))
    assert section.about == "3 pairs and 3 turns that people labeled: agreement with votes and gold grades"
    found = [[cell.text for cell in row] for row in section.parts[0].rows]
    assert [(row[1], *row[3:]) for row in found] == [
        ("0.571", "7", "3"),
        ("0.500", "2", "2"),
        ("0.500", "2", "2"),
    ]
    # per problem 2 of 3, 1 of 1 and 1 of 3 agree: SE .154 at 2 degrees of freedom, so .571 ± .663
    assert found[0][2] == "0.000 to 1.000"
    assert by_hand_sections(Judged("run", Study(), (), by_hand=rows[7:])) == []
