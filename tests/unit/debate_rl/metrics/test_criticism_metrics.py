"""The figures of criticism by hand, on scripted critiques of a known course."""

from __future__ import annotations

import pytest

from debate import DebateConfig, Problem, run_debates
from debate.hold_many import debate_seed
from debate.policies.scripted import Answers, ScriptedPolicy, scripted_debaters
from debate.prompting.seating import seat_debate
from debate_rl.metrics.features import criticism_metrics

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
    debate = held(
        {
            (0, 1): said([b, c], f"{b} > {c}"),
            (1, 1): said([b, "Z1"], f"{c} > {d}"),  # itself, and nobody
            (2, 1): said([], f"{b} > {d}"),
            (3, 1): said([b], f"{b} > {c}"),
            (0, 3): said([], f"{c} > {b}"),
            (3, 3): said([], f"{c} > {b}"),
        }
    )
    # b right then wrong, c wrong then right, d wrong and named by nobody, then right; a right all along
    correct = [[True, None, True], [True, None, False], [False, None, True], [False, None, True]]
    figures = criticism_metrics([debate], [correct])
    assert figures == pytest.approx(
        {
            "criticism/targets": 3 / 4,
            "criticism/turns_share": 2 / 4,
            "criticism/valid_share": 3 / 5,
            "criticism/wrong_share": 1 / 3,
            # b: 1 to 0 for agent 0 (by 2 and 3, then 3), 1 to 0 for agent 3 (by 0 and 2, then 0);
            # c for agent 0: 1/2 (by 1 and 3) to 1
            "criticism/score_drop": (1 + 1 - 0.5) / 3,
            "criticism/persuasive_share": 2 / 3,
            "criticism/self_corrected_share": 1 / 4,  # c alone: d was not voted on in the verdict
            "criticism/mended_share": 1.0,
            "criticism/mended_alone_share": 1.0,
            "criticism/broken_share": 1.0,
            "criticism/broken_alone_share": 0.0,
        }
    )


def test_a_debate_has_none_and_silent_critics_have_few():
    policy = scripted_debaters({"p": Answers("4", ("5",))})
    [debate] = run_debates([PROBLEM], policy, DebateConfig(num_rounds=2), seed=1)
    assert criticism_metrics([debate], [None]) == {}
    silent = held({})
    assert criticism_metrics([silent], [None]) == {
        "criticism/targets": 0.0,
        "criticism/turns_share": 0.0,
        "criticism/self_corrected_share": 0.0,
    }
