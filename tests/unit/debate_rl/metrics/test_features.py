"""Figures of single features by hand: labels, programs, critiques."""

import pytest
from msgspec import UNSET

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, ScriptedPolicy, scripted_debaters
from debate.prompting.seating import seat_debate
from debate.seeds import debate_seed
from debate.types import Call, Completion, Debate, ParsedTurn, Span, Turn, TurnId
from debate_rl.metrics import features
from debate_rl.metrics.features import criticism_metrics, label_counts, tool_figures, tool_metrics
from rewards import Credit
from rewards.labels import OF_TRUTH


def test_counts_are_of_problems_and_of_rounds():
    # Two debates of an unlabelled problem: 4 in round 0 (wrong), no label in round 1.
    half = Credit("majority", "none", ("4", None), ((True, None), (False, None)))
    grades = ((False, True), (True, None))
    counts = label_counts([OF_TRUTH, half, half, Credit("none", "none")], [grades] * 4, ["p", "q", "q", "r"])
    assert counts == features.LabelCounts(problems=3, labelled=1, rounds=2, pseudo=1, graded=1, right=0)


def test_any_solution_with_the_answer_shows_whether_a_label_is_right():
    # Nobody gave the label in round 0; in round 1 one who did was right.
    credit = Credit("voted", "none", ("4", "4"), ((False, True), (False, False)))
    counts = label_counts([credit], [((False, True), (False, False))], ["p"])
    assert (counts.pseudo, counts.graded, counts.right) == (2, 2, 2)
    assert label_counts([credit], [None], ["p"]).graded == 0


def test_coins_for_truth_leave_a_label_to_the_judges():
    coin = Credit("coin", "truth", (), ((True,),))
    assert label_counts([coin], [((True,),)], ["p"]) == features.LabelCounts(problems=1, labelled=1)


def turn(agent, *statuses, round_=0, ballot=False, tools=True):
    calls = tuple(Call(Span(0, 0), Span(0, 0), Span(0, 0), status) for status in statuses)
    reply = Completion((), (), (), "", "stop", 0, calls=calls if tools else UNSET)
    return Turn(TurnId(agent, round_), "K7", (), reply, ParsedTurn(), ballot=ballot)


def debate(problem, *turns):
    config = DebateConfig(num_agents=2, num_rounds=1)
    return Debate(Problem(problem, "?", "4"), (), turns, (), 0, 0, config)


def test_figures_by_hand():
    first = debate("a", turn(0, "ok", "timeout", "refused"), turn(1), turn(0, "error", round_=1, ballot=True))
    second = debate("b", turn(0), turn(1, "ok"))
    correct = [[[True], [False]], [[True], [True]]]
    wanted = {"tools/calls": (2 + 0 + 1 + 0 + 1) / 5, "tools/failed": 2 / 4, "tools/timeouts": 1 / 4}
    wanted |= {
        "tools/share": 2 / 4,
        "tools/only_with_code": 1 / 2,
    }  # of "a" alone: "b" was right without, too
    assert tool_metrics([first, second], correct) == pytest.approx(wanted)


def test_what_was_not_graded_is_no_answer():
    turns = [(turn(0, "ok"), None), (turn(1), False)]
    assert tool_figures(turns)["share"] == [0.0]
    assert tool_figures([(turn(0, "ok"), None)])["only_with_code"] == []


def test_a_program_that_was_refused_did_not_run():
    nothing = {"calls": [0.0], "failed": [], "timeouts": [], "share": [0.0], "only_with_code": [0.0]}
    assert tool_figures([(turn(0, "refused"), True)]) == nothing


def test_without_tools_there_are_no_figures():
    assert tool_metrics([debate("a", turn(0, tools=False))], [None]) == {}


PROBLEM = Problem("p", "What is 2 + 2?", "4")
CRITIQUE = DebateConfig(protocol="critique", num_agents=4, num_rounds=3)
HANDLES = seat_debate(PROBLEM, CRITIQUE, debate_seed(7, 0, PROBLEM)).handles


def held(replies):
    def reply(request):
        return replies.get(tuple(request.turn), "<solution>\\boxed{4}</solution>")

    return run_debates([PROBLEM], ScriptedPolicy(reply), CRITIQUE, seed=7)[0]


def said(targets, ranking):
    named = "".join(f"<target>{target}</target>no" for target in targets)
    return f"<evaluation>{named}</evaluation><comparison>{ranking}</comparison>"


def test_each_figure_by_hand():
    _, b, c, d = HANDLES
    replies = {
        (0, 1): said([b, c], f"{b} > {c}"),
        (1, 1): said([b, "Z1"], f"{c} > {d}"),
    }  # itself, and nobody
    replies |= {(2, 1): said([], f"{b} > {d}"), (3, 1): said([b], f"{b} > {c}")}
    debate = held(replies | dict.fromkeys([(0, 3), (3, 3)], said([], f"{c} > {b}")))
    # b right then wrong, c wrong then right, d wrong and named by nobody, then right; a right all along
    correct = [[True, None, True], [True, None, False], [False, None, True], [False, None, True]]
    wanted = {"targets": 3 / 4, "turns_share": 2 / 4, "valid_share": 3 / 5, "wrong_share": 1 / 3}
    # b: 1 to 0 for agent 0 (by 2 and 3, then 3), 1 to 0 for agent 3 (by 0 and 2, then 0);
    # c for agent 0: 1/2 (by 1 and 3) to 1
    wanted |= {"score_drop": (1 + 1 - 0.5) / 3, "persuasive_share": 2 / 3}
    wanted |= {"self_corrected_share": 1 / 4}  # c alone: d was not voted on in the verdict
    wanted |= {"mended_share": 1, "mended_alone_share": 1, "broken_share": 1, "broken_alone_share": 0}
    wanted = {f"criticism/{name}": value for name, value in wanted.items()}
    assert criticism_metrics([debate], [correct]) == pytest.approx(wanted)


def test_a_debate_has_none_and_silent_critics_have_few():
    policy = scripted_debaters({"p": Answers("4", ("5",))})
    [debate] = run_debates([PROBLEM], policy, DebateConfig(num_rounds=2), seed=1)
    assert criticism_metrics([debate], [None]) == {}
    silent = held({})
    few = ("targets", "turns_share", "self_corrected_share")
    assert criticism_metrics([silent], [None]) == {f"criticism/{name}": 0.0 for name in few}
