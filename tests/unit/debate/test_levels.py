import pytest
from pydantic import ValidationError

from debate import DebateConfig, Problem, run_debates
from debate.early_stop import is_of_protocol
from debate.policies import ScriptedPolicy
from transcripts import Record
from transcripts.codec import from_line, to_line

SAYS = "<solution>\\boxed{4}</solution><evaluation>e</evaluation><comparison></comparison>"
CONFIG = DebateConfig.model_validate(
    {
        "num_agents": 4,
        "num_rounds": 3,
        "min_rounds": 2,
        "by_level": [
            {"level": 1, "num_agents": 3, "num_rounds": 1},
            {"level": "Level 2", "num_rounds": 2},
            {"level": "one", "num_agents": 1},
        ],
    }
)


def test_each_level_has_its_own_size_and_the_others_the_most():
    problems = [Problem(level or "none", "?", "4", level=level) for level in ("1", "Level 2", "one", "3", "")]
    debates = run_debates(problems, ScriptedPolicy(lambda request: SAYS), CONFIG, seed=0)
    sizes = [
        (d.protocol.num_agents, d.protocol.num_rounds, len(d.personas), len(d.turns), d.rounds_saved or 0)
        for d in debates
    ]
    # turns: N (R + 1) with a ballot; all say 4, so that debates stop where fewer rounds may be held
    assert sizes == [(3, 1, 3, 6, 0), (4, 2, 4, 12, 0), (1, 3, 1, 3, 0), (4, 2, 4, 12, 1), (4, 2, 4, 12, 1)]
    for debate in debates:
        assert debate.protocol.by_level == ()
        assert is_of_protocol(debate, CONFIG)
        assert from_line(to_line(Record(debate, 0, "g"))).debate == debate
    swapped = CONFIG.model_copy(update={"by_level": CONFIG.by_level[1:]})
    assert [is_of_protocol(debate, swapped) for debate in debates] == [False, True, True, True, True]


def test_a_debate_of_a_level_is_that_of_a_recipe_of_its_size():
    problem = Problem("p", "What is 2 + 2?", "4", level="1")
    small = DebateConfig(num_agents=3, num_rounds=1)
    by_level, alone = (
        run_debates([problem], ScriptedPolicy(lambda request: SAYS), config, seed=5)
        for config in (CONFIG, small)
    )
    assert by_level == alone


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (
            [{"level": "1", "num_agents": 5}],
            r"by_level.0 \(level '1'\): num_agents = 5 is more than debate.num_agents = 3",
        ),
        ([{"level": "1"}], "changes nothing; set num_agents or num_rounds"),
        ([{"level": "1", "num_round": 1}], "unknown key 'num_round'; did you mean 'num_rounds'"),
        ([{"level": True, "num_agents": 1}], "valid string"),
    ],
)
def test_what_cannot_be_is_refused(levels, message):
    with pytest.raises(ValidationError, match=message):
        DebateConfig.model_validate({"by_level": levels})
