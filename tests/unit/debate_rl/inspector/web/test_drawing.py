"""The drawings of votes and the bins of histograms, in numbers."""

import re
from itertools import pairwise
from math import hypot

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.personas import Persona
from debate.types import TurnId
from debate_rl.inspector.blocks import VoteDrawing
from debate_rl.inspector.views.group import binned
from debate_rl.inspector.views.votes import Arrow, RoundGraph
from debate_rl.inspector.web.drawing import LABEL, NODE, draw_votes

A, B, C = (TurnId(agent, 0) for agent in range(3))


class View:
    """A debate of which a drawing needs handles, personas and grades alone."""

    handles = tuple(f"K{agent}" for agent in range(64))
    personas = tuple(Persona(f"P{agent}", "") for agent in range(64))

    def turn(self, turn):
        return None


def draw(graph):
    return draw_votes(VoteDrawing(graph, View()))


def arrow(judge, winner, loser, truth="right", **more):
    values = {"tie": False, "counts": True, "dropped": "", "in_cycle": False, "line": "", "span": None} | more
    return Arrow(TurnId(judge, 1), winner, loser, left=winner, right=loser, truth=truth, **values)


def graph(arrows, solutions=(A, B, C), edges=(), cycles=(), condorcet=None):
    size = len(solutions)
    matrix, ties = ((0.0,) * size,) * size, ((0,) * size,) * size
    return RoundGraph(0, solutions, tuple(arrows), matrix, ties, edges, cycles, condorcet, ())


def test_truth_is_told_by_sign_and_form_as_well_as_by_colour():
    votes = [arrow(2, A, B), arrow(0, B, C, "wrong"), arrow(1, C, A, "undecidable"), arrow(1, A, C, tie=True)]
    curves = sorted(draw(graph(votes)).curves, key=lambda curve: curve.index)
    assert [curve.sign for curve in curves] == ["✓", "✗", "?", "=✓"]
    assert [curve.tips[-1] == "Z" for curve in curves[:3]] == [True, True, False]
    assert "a4 4" in curves[3].tips


def test_votes_on_one_pair_lie_side_by_side_and_point_at_the_loser():
    drawn = draw(graph([arrow(2, A, B), arrow(3, A, B), arrow(4, B, A)], solutions=(A, B)))
    assert len({(curve.x, curve.y) for curve in drawn.curves}) == 3
    at = {node.turn: (node.x, node.y) for node in drawn.nodes}
    for curve, loser in zip(drawn.curves, (B, B, A), strict=True):
        points = [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", curve.tips)]
        x, y = at[loser]
        assert hypot(points[1][0] - x, points[1][1] - y) == pytest.approx(NODE + 3, abs=0.2)


def points_of(curve):
    """Points along the line of a curve."""
    x0, y0, x1, y1, x2, y2 = map(float, re.findall(r"-?[\d.]+", curve.path))
    for t in (n / 100 for n in range(101)):
        first, middle, last = (1 - t) ** 2, 2 * t * (1 - t), t**2
        yield first * x0 + middle * x1 + last * x2, first * y0 + middle * y1 + last * y2


@pytest.mark.parametrize("agents", range(2, 9))
@pytest.mark.parametrize("votes", [1, 2, 3])
def test_no_label_sits_on_a_line_of_its_pair_however_it_slants(agents, votes):
    solutions = tuple(TurnId(agent, 0) for agent in range(agents))
    for other in solutions[1:]:
        drawn = draw(graph([arrow(9, A, other), arrow(9, other, A), arrow(9, A, other)][:votes], solutions))
        for label in drawn.curves:
            for x, y in (point for curve in drawn.curves for point in points_of(curve)):
                assert abs(x - label.x) > LABEL[0] or abs(y - label.y) > LABEL[1]


def test_a_cycle_is_lit_and_a_crowd_is_drawn_as_majorities():
    edges, cycle = ((A, B), (B, C), (C, A)), (A, B, C)
    drawn = draw(graph([arrow(2, A, B, in_cycle=True)], edges=edges, cycles=(cycle,)))
    assert [curve.lit for curve in drawn.curves] == [True]
    assert {node.in_cycle for node in drawn.nodes} == {True}
    crowd = draw(graph([arrow(9, A, B)] * 61, edges=edges, cycles=(cycle,)))
    assert (crowd.majorities, len(crowd.curves), crowd.curves[0].lit) == (True, 3, True)


@given(st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), max_size=80), st.integers(1, 64))
def test_every_drawing_lies_in_its_frame(pairs, agents):
    solutions = tuple(TurnId(agent, 0) for agent in range(agents))
    arrows = [arrow(0, TurnId(a % agents, 0), TurnId(b % agents, 0)) for a, b in pairs]
    drawn = draw(graph(arrows, solutions))
    for node in drawn.nodes:
        assert NODE <= node.x <= drawn.width - NODE
        assert NODE <= node.y <= drawn.height - NODE
    assert len({(node.x, node.y) for node in drawn.nodes}) == agents


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50))
def test_bins_hold_every_value_once(values):
    bins = binned(values)
    assert sum(size for _, _, size in bins) == len(values)
    assert len(bins) <= 14
    assert bins[0][2]
    assert bins[-1][2]
    assert all(before[1] == after[0] for before, after in pairwise(bins))
