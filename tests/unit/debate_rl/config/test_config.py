import pytest
from pydantic import ValidationError

from debate_rl.config import Config

TINY, WORDS = {"model": {"tiny": {}}}, {"kind": "words"}


def config(**changes):
    return Config.model_validate(TINY | changes)


OF_TRUTH, OF_JUDGES = ({name: {"key": "debate"}} for name in ("truth", "judge"))
BY_CONTEXT, BY_PAIR = {"truth": {"key": "context"}}, {"judge": {"key": "pair"}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"debate": {"num_agent": 3}}, "unknown key 'num_agent'; did you mean 'num_agents'"),
        ({"debate": {"num_agents": 0}}, "greater than or equal to 1"),
        ({"learner": {"lr": "fast"}}, "valid number"),
        (
            {"advantages": BY_PAIR, "rewards": {"truth_missing": 1.0}},
            'advantages.judge.key = "pair" recognizes right solutions by their truth reward',
        ),
        (
            {"advantages": BY_CONTEXT, "rewards": {"form_bonus": 0.1}},
            'advantages.truth.key = "context" finds right solutions .* but rewards.form_bonus = 0.1',
        ),
        (
            {"advantages": BY_CONTEXT, "rewards": {"labels": 0.5, "pseudo": "voted"}},
            'rewards.pseudo = "voted" labels it only afterwards',
        ),
        (
            {"advantages": BY_PAIR, "rewards": {"labels": 0.5, "pseudo": "anchored"}},
            'advantages.judge.key = "pair" .* rewards.pseudo = "anchored" labels it only afterwards',
        ),
        (
            {"advantages": OF_TRUTH, "debate": {"seats": ["learning", "frozen", "frozen"]}},
            'advantages.truth.key = "debate" compares agents .* with one agent learns there is only one',
        ),
        (
            {"advantages": OF_JUDGES, "debate": {"protocol": "zero_sum", "num_rounds": 1}},
            'with debate.protocol = "zero_sum" there is only one',
        ),
        ({"advantages": {**OF_TRUTH, "discount": 0.5}}, "with advantages.discount = 0.5 their later rewards"),
        ({"debate": {"judge_own": True}}, "rewards.judge_own and debate.judge_own must be equal"),
        ({"rewards": {"judge_truth_weight": 0.0}}, "no pair has two judges"),
        ({"debate": {"num_agents": 1}, "rewards": {"truth_weight": 0.0}}, "nothing to learn from"),
        ({"warm_start": {"solve_steps": 1}}, "sorting, not of env.kind = 'gsm8k'"),
        (
            {"warm_start": {"debate_steps": 1}, "env": WORDS, "model": {"tiny": {}, "lora_rank": 4}},
            "model.lora_rank = 4 trains an adapter",
        ),
        (
            {"warm_start": {"solve_steps": 1, "levels": [1, 3]}, "env": WORDS | {"levels": [1, 2]}},
            "warm_start.levels: not among env.levels: 3",
        ),
        ({"train": {"control": "coin"}}, "shuffled_votes"),
        (
            {"run": {"allow_changes": ["learner", "train.step"]}},
            "run.allow_changes: no key is named 'train.step'; did you mean 'train.steps'",
        ),
        ({"model": {"tiny": {}, "name_or_path": "x"}}, "exactly one of name_or_path"),
    ],
)
def test_impossible_settings_are_refused_in_words(changes, message):
    with pytest.raises(ValidationError, match=message):
        config(**changes)


@pytest.mark.parametrize(("own", "ahead", "oldest"), [({}, 0, 1), ({}, 4, 5), ({"max_staleness": 9}, 4, 9)])
def test_rows_older_than_the_debates_held_ahead_are_dropped_unless_a_bound_is_named(own, ahead, oldest):
    model = {"tiny": {}, "policy": "vllm"} if ahead else {"tiny": {}}
    resolved = config(learner=own, train={"async_level": ahead}, model=model).resolved_learner()
    assert resolved.max_staleness == oldest


def test_data_may_be_allowed_to_change_beside_keys():
    allowed = config(run={"allow_changes": ["data", "learner.lr"]}).run.allow_changes
    assert allowed == ("data", "learner.lr")


RIGHT, LURE = {"right": [0.6, 0.4, 0.5]}, {"lure": [0.3, 0.5, 0.4]}


@pytest.mark.parametrize(
    ("warm", "message"),
    [
        ({"batch": [1, -1, 1, 1]}, "warm_start.batch\n.* four counts of 0 or more"),
        ({"batch": [0, 0, 0, 0]}, "warm_start.batch\n.* four counts of 0 or more"),
        (LURE | {"right": [0.5, 1.01]}, "warm_start.right\n.* one or more probabilities in 0..1"),
        (RIGHT | {"lure": [-0.1]}, "warm_start.lure\n.* one or more probabilities in 0..1"),
        (LURE | {"right": []}, "warm_start.right\n.* one or more probabilities in 0..1"),
        (RIGHT | {"lure": [0.3, 0.61, 0.5]}, r"for one persona they are 0.4 \+ 0.61 > 1"),
        (LURE | {"right": [0.5, 0.5]}, None),
        (LURE | {"right": [0.5, 0.6]}, r"0.6 \+ 0.5 > 1"),  # the second of two sits at seats 1 and 3
        ({"right": [0.0], "lure": [1.0]}, None),
        ({"right": [0.7], "lure": [0.3]}, None),
        ({"right": [0.9], "lure": [0.1]}, None),
    ],
)
def test_shares_and_counts_of_the_warm_start(warm, message):
    if message is None:
        config(warm_start=warm)
    else:
        with pytest.raises(ValidationError, match=message):
            config(warm_start=warm)


def test_a_warm_start_that_would_demonstrate_nothing_of_the_debate_is_refused():
    changes = {"warm_start": {"debate_steps": 1, "batch": [0, 0, 3, 3]}, "env": WORDS}
    config(**changes)
    with pytest.raises(ValidationError, match=r"has none of what this debate can use \(debate, solve\)"):
        config(**changes, debate={"num_agents": 2})


def test_the_learner_takes_its_seed_from_the_run_and_dr_grpos_constant_from_the_debate():
    one = config(debate={"max_tokens": 40, "thinking_tokens": 2}, seed=1).resolved_learner()
    assert one.max_tokens == 42
    assert config(learner={"max_tokens": 7}).resolved_learner().max_tokens == 7
    assert one.seed != config(seed=2).resolved_learner().seed
    assert one.seed != config(seed=1, learner={"seed": 1}).resolved_learner().seed
    assert one.seed == config(seed=1).resolved_learner().seed


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
@pytest.mark.parametrize(
    ("table", "key"), [("learner", "lr"), ("advantages", "lambda_gen"), ("warm_start", "adopt")]
)
def test_no_setting_is_infinite(table, key, number):
    with pytest.raises(ValidationError, match=f"{table}.{key}"):
        Config.model_validate({"model": {"tiny": {}}, table: {key: number}})
