"""A judge's folder is a recipe whose ballots are those that the judge was trained on."""

import pytest

from debate import DebateConfig, Problem
from debate.prompting.fitting import ContextBudget
from debate.prompting.prompt import agent_prompt
from debate.prompting.seating import seat_debate
from debate.prompting.shown import asks_pairs
from debate_rl.config.judges import judge_files
from debate_rl.config.models import ModelConfig
from debate_rl.config.recipes import ConfigError, open_run_or_recipe
from debate_rl.strategies.selection import entry_of, judging_protocol, seats_of

SETTINGS = [
    {},
    {"prompts": "tiny", "handles": ["K7", "Q2", "M4", "X9"], "num_agents": 4, "max_tokens": 48},
    {"final_ballot": False, "num_rounds": 3, "personas": "wide", "temperature": 0.4, "thinking_tokens": 64},
    {"history_rounds": -1, "order": "per_viewer", "stop": ["END"], "context_tokens": 4096, "top_p": 0.9},
    {"protocol": "critique", "num_rounds": 3, "min_rounds": None},
    {"ballot": "swiss", "num_agents": 5, "num_rounds": 2},
    {"protocol": "consultancy", "num_rounds": 1},
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def written(folder, protocol, **model):
    files = judge_files(protocol, ModelConfig(name_or_path="x", **model))
    for name, text in files.items():
        (folder / name).write_text(text)
    return open_run_or_recipe(str(folder), ())


def ballot(protocol):
    """Return what a judge reads, and what its request says of the reply."""
    config = judging_protocol(protocol)
    problem = Problem("p", "What is 2 + 2?", answer="4", kind="number")
    seating = seat_debate(problem, config, 7)
    past = [[entry_of(seating, agent, None) for agent in range(3)]]
    seat, *sides = seats_of(config)
    pair = sides if asks_pairs(config, 1) else None
    prompt = agent_prompt(seating, past, seat, 1, ContextBudget(None, lambda _: 0), pair=pair)
    limits = (config.max_tokens, config.thinking_tokens, config.stop, config.top_p, config.top_k)
    return prompt, seating.personas[seat], limits


@pytest.mark.parametrize("settings", SETTINGS)
def test_its_ballots_are_those_of_the_run(folder, settings):
    protocol = DebateConfig.model_validate(settings)
    run, config = written(folder, protocol)
    assert run is None
    assert config.model.name_or_path == str(folder)
    assert ballot(config.debate) == ballot(protocol)


def test_a_prompt_set_of_ones_own_travels_with_it(folder, tmp_path):
    own = tmp_path / "own.toml"
    shipped = judge_files(DebateConfig(), ModelConfig(name_or_path="x"))["prompts.toml"]
    own.write_text(shipped.replace("This is the final ballot.", "Now judge."))
    protocol = DebateConfig(prompts=str(own))
    expected = ballot(protocol)
    _, config = written(folder, protocol, chat=False)
    own.unlink()
    assert ballot(config.debate) == expected
    assert "Now judge." in expected[0].messages[-1].content
    assert config.model.chat is False


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[debate]\nnum_agent = 3\n", "num_agent"),
        ("[train]\nsteps = 3\n", "has a table [train], but a judge has only [debate] and [model]"),
        ("[debate", "judge.toml: not TOML"),
        ("", "judge.toml: has no table [debate]"),
        ("debate = 3\n", "judge.toml: debate: must be a table of settings (got 3)"),
        ('[debate]\ntools = "python"\n', "judge.toml: debate.tools: does not affect ballots"),
        ('[model]\npolicy = "openai"\nserver = {base_url = "http://x"}\n', "judge.toml: model.policy"),
        ('[debate]\npersonas = "evil:CODE"\n', "debate.personas='evil:CODE' names code"),
    ],
)
def test_a_file_that_is_no_judge_is_one_line(folder, text, line):
    written(folder, DebateConfig())
    (folder / "judge.toml").write_text(text)
    with pytest.raises((ConfigError, ValueError)) as error:
        open_run_or_recipe(str(folder), ())
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_half_a_judge_is_not_taken_for_a_model_without_a_protocol(folder):
    written(folder, DebateConfig())
    (folder / "judge.toml").unlink()
    with pytest.raises(FileNotFoundError, match=r"judge.toml"):
        open_run_or_recipe(str(folder), ())
    (folder / "prompts.toml").unlink()
    assert open_run_or_recipe(str(folder), ())[1].debate == DebateConfig()
