"""Settings that change with the steps, what is logged of them, and a limit of hours."""

from types import SimpleNamespace

import pytest

from debate_rl.config import Config
from debate_rl.training.loop import reached_limit, schedule_metrics


def config_of(**tables: object) -> Config:
    whole = {"env": {"kind": "pair_sum"}, "model": {"tiny": {}}} | tables
    return Config.model_validate(whole)


def test_the_weights_of_a_step_are_logged_and_others_only_where_they_change():
    tables = {"rewards": {"truth_weight": [[0, 1], [4, 0]]}, "debate": {"temperature": [[0, 1.2], [4, 0.8]]}}
    tables |= {"advantages": {"lambda_judge": [[2, 0], [4, 1]]}}
    plain = {"truth_weight": 0.5, "lambda_gen": 1.0, "lambda_judge": 1.0}
    changed = {"truth_weight": 0.25, "lambda_gen": 1.0, "lambda_judge": 0.5, "temperature": 0.9}
    for config, wanted in ((config_of(), plain), (config_of(**tables), changed)):
        found = {name.removeprefix("schedule/"): v for name, v in schedule_metrics(config, 3).items()}
        assert found == pytest.approx(wanted)


def test_the_agents_of_a_step_have_its_temperature_and_evaluations_the_last():
    config = config_of(debate={"temperature": [[0, 1.2], [4, 0.8]]})
    at = [config.at_step(step).debate.agent_personas[0].temperature for step in (0, 2, 4, 9)]
    assert at == pytest.approx([1.2, 1.0, 0.8, 0.8])
    assert config.debate.agent_personas[0].temperature == 0.8


def test_hours_end_a_run():
    run = SimpleNamespace(config=config_of(train={"hours": 0.5}))
    assert reached_limit(run, 1700.0) is None
    end = reached_limit(run, 1900.0)
    assert (end.reason, end.why) == ("hours", "the run took 32 min, and train.hours = 0.5")
