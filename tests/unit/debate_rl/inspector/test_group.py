from dataclasses import replace

import pytest

from debate_rl.inspector.blocks import Layout, lines_of
from debate_rl.inspector.views.group import (
    Group,
    group_blocks,
    group_named,
    group_view,
    groups_of,
    groups_table,
    histograms,
)
from transcripts import RunStore, TranscriptError, TurnAdvantages, write_step


@pytest.fixture
def store(tmp_path, step_records):
    """A run of two steps in which the advantage of agent a in debate d is d - a / 3; ballots have none."""
    for step in range(2):
        records = [
            replace(
                record,
                advantages=tuple(
                    TurnAdvantages(turn.id, generator=number - turn.id.agent / 3)
                    for turn in record.debate.turns
                    if not turn.ballot
                ),
            )
            for number, record in enumerate(step_records(step))
        ]
        write_step(tmp_path / "run/transcripts", step, records, seal=True)
    with RunStore.open(tmp_path / "run") as opened:
        yield opened


def test_a_step_has_a_group_for_each_problem(store):
    groups = groups_of(store, 1)
    rows = store.debates("step:1")
    assert [row.id for group in groups for row in group.rows] == [row.id for row in rows]
    assert len({group.problem.id for group in groups}) == len(groups)
    with pytest.raises(TranscriptError, match="no debate of step 9"):
        groups_of(store, 9)
    with pytest.raises(TranscriptError, match="step 1: no debate on problem 'p'"):
        group_named(groups, "p")


def test_the_grid_has_the_stored_grades_and_advantages(store):
    groups = groups_of(store, 1)
    chosen = group_named(groups, groups[-1].problem.id)
    view = group_view(store, chosen)
    rows = ["".join(span.text for span in row) for row in lines_of(group_blocks(view), Layout())]
    for debate in view.debates:
        number = int(debate.id.partition(".")[2])
        for agent, turns in enumerate(debate.turns):
            [row] = [row for row in rows if row.startswith(debate.id) and debate.who(agent) in row]
            solutions = [turn for turn in turns if turn is not None and not turn.ballot]
            assert row.count(f"{number - agent / 3:+.2f}") == len(solutions) > 0
            assert all(turn.grade in row for turn in solutions)
    judged = sum(told for debate in view.judged for _, told in debate)
    assert judged == sum(row.facts.decidable_votes for row in chosen.rows)


def test_the_first_group_with_right_and_wrong_answers_is_shown_first(store):
    groups = groups_of(store, 1)
    chosen = group_named(groups, "")
    mixed = [group for group in groups if 0 < (group.mean("accuracy_last_round") or 0) < 1]
    assert chosen is (mixed or groups)[0]
    table = groups_table(groups, chosen)
    assert [cells[0].style for cells in table.rows].count("strong") == 1


@pytest.mark.parametrize("means", [(0.3, 0.1 + 0.2), (1e308, -1e308)])
def test_rounding_and_absurd_rewards_have_no_histogram(store, means):
    row = groups_of(store, 0)[0].rows[0]
    facts = [replace_facts(row, mean) for mean in means]
    assert histograms([Group(0, facts)]) == []


def replace_facts(row, mean):
    rewards = {f"reward_{name}": None for name in ("truth", "judge", "format")}
    return replace(row, facts=row.facts._replace(reward_peer=mean, **rewards))
