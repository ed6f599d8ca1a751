import json
import re
import tomllib
from pathlib import Path

import pytest
import torch

from debate_rl.config import Config
from debate_rl.config.recipes import load_config, read_run_config
from debate_rl.metrics.held_out import read_held_out, sentence
from debate_rl.runs.weights import load_kept, newest_weights
from debate_rl.training.loop import train

from .conftest import python

IDS = [[7, 9, 30, 41, 52, 60, 8, 7], [5, 80, 81, 6, 90, 12, 100, 33]]
TEXT = "<solution> 3 + 4 = 7. \\boxed{ 3 4}</solution>, ünïcode 👩‍🔬"
OURS = ("commands", "debate", "envs", "inspector", "learner", "reports", "rewards", "transcripts")
CHAT = [{"role": "user", "content": "Target 7. Numbers 3 4 5."}]
SAMPLING = ("eos_token_id", "max_new_tokens", "temperature", "top_p", "top_k")
ASK = f"""
import json, sys, torch
with torch.no_grad():
    table = model(torch.tensor({IDS})).logits.float().log_softmax(-1)
ours = [name for name in {OURS} if sys.modules[name] is not None]
print(json.dumps({{
    "logprobs": table.tolist(),
    "ids": tokenizer({TEXT!r})["input_ids"],
    "chat": tokenizer.apply_chat_template({CHAT!r}, tokenize=False, add_generation_prompt=True),
    "end": tokenizer.eos_token_id,
    "sampling": [getattr(model.generation_config, name) for name in {SAMPLING}],
    "ours": ours,
}}))
"""
LORA = ["model.lora_rank=4", "learner.lr=0.05", "learner.adam_eps=1e-4"]


@pytest.fixture(scope="module")
def runs(tiny_recipe, tmp_path_factory):
    """Two short runs, of full weights and of an adapter, in a folder of their own."""
    folder = tmp_path_factory.mktemp("runs")
    for name, more in {"full": ["held_out.every=2", "learner.lr=0.01"], "lora": LORA}.items():
        where = [f"run.dir={folder / name}", "logging.progress=none"]
        train(load_config(Config, tiny_recipe, [*where, *more]))
    return folder


@pytest.fixture
def export(runs, debate_command, monkeypatch):
    """Return call(*arguments) -> (exit code, stdout, stderr) of ``debate export`` beside the runs."""
    monkeypatch.chdir(runs)
    return lambda *arguments: debate_command("export", *arguments)


def card_code(folder: Path) -> str:
    [code] = re.findall(r"```python\n(.*?)\n```", (folder / "README.md").read_text(), re.DOTALL)
    assert len(code.splitlines()) == 3
    return code


def loaded_elsewhere(code: str, cwd: Path) -> dict:
    """Run the lines of a model card where our packages cannot be imported, and ask the model."""
    hidden = f"import sys; sys.modules |= dict.fromkeys({OURS})\n"  # None: cannot be imported
    done = python("-c", hidden + code + ASK, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def loaded_here(run: Path, *overrides: str):
    path, config = Path(run), read_run_config(Path(run), overrides)
    model, tokenizer = load_kept(config, newest_weights(path))
    with torch.no_grad():
        table = model(torch.tensor(IDS)).logits.float().log_softmax(-1)
    return table, tokenizer, model


def assert_same(found: dict, table, tokenizer, *, within: float):
    assert found["ours"] == []
    torch.testing.assert_close(torch.tensor(found["logprobs"]), table, atol=within, rtol=0)
    assert found["ids"] == tokenizer(TEXT)["input_ids"]
    assert found["chat"] == tokenizer.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    assert (found["end"], found["sampling"]) == (0, [[0], 24, 0.8333, 1.0, 0])


@pytest.mark.slow
def test_full_weights_load_with_the_lines_of_their_card(export, runs):
    code, out, err = export("full")
    assert (code, err) == (0, "")
    folder = runs / "full/export"
    assert card_code(folder) in out
    table, tokenizer, _ = loaded_here(runs / "full")
    assert_same(loaded_elsewhere(card_code(folder), runs), table, tokenizer, within=1e-6)
    assert (folder / "chat_template.jinja").is_file()


@pytest.mark.slow
def test_an_adapter_loads_on_its_base(export, runs):
    assert export("lora")[0] == 0
    folder = runs / "lora/export"
    settings = json.loads((folder / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == str(folder / "base")
    assert (settings["r"], settings["peft_type"]) == (4, "LORA")
    table, tokenizer, model = loaded_here(runs / "lora")
    assert_same(loaded_elsewhere(card_code(folder), runs), table, tokenizer, within=1e-6)
    with model.disable_adapter(), torch.no_grad():
        base = model(torch.tensor(IDS)).logits.float().log_softmax(-1)
    assert float((base - table).abs().max()) > 1e-3  # the adapter was trained, and counts


@pytest.mark.slow
def test_a_merged_adapter_is_a_plain_model(export, runs):
    assert export("lora", "--merge", "--out", "merged")[0] == 0
    assert not (runs / "merged/adapter_config.json").exists()
    table, tokenizer, _ = loaded_here(runs / "lora")
    assert_same(loaded_elsewhere(card_code(runs / "merged"), runs), table, tokenizer, within=1e-5)
    facts = json.loads((runs / "merged/export.json").read_text())
    found = (facts["kind"], facts["checkpoint"], facts["policy_version"])
    assert found == ("merged", "checkpoints/step_000002", 2)


def test_the_card_has_the_recipe_and_the_figures_of_the_run(export, runs):
    assert export("full")[0] == 0
    card = (runs / "full/export/README.md").read_text()
    [recipe] = re.findall(r"```toml\n(.*?)\n```", card, re.DOTALL)
    assert tomllib.loads(recipe) == tomllib.loads((runs / "full/config.toml").read_text())
    [first] = re.findall(r"\n# full\n\n(.*)\n", card)
    assert first == sentence(read_held_out(runs / "full"))
    assert first.startswith("Held-out accuracy of one agent alone: ")
    assert "after 2 steps" in first
    assert "torch 2." in card


def test_an_export_is_replaced_and_nothing_else_is(export, runs):
    assert export("full", "--out", "again")[0] == 0
    (runs / "again/stale").touch()
    assert export("full", "--out", "again")[0] == 0
    assert not (runs / "again/stale").exists()
    (runs / "mine").mkdir(exist_ok=True)
    (runs / "mine/notes").write_text("keep")
    for words in (("lora", "--out", "again"), ("full", "--out", "mine"), ("full", "--out", "mine/notes")):
        code, _, err = export(*words)
        assert (code, err.startswith(f"debate: --out {words[-1]}: ")) == (2, True)
    assert (runs / "mine/notes").read_text() == "keep"


def test_what_is_no_run_or_has_no_weights_is_refused(export, runs):
    (runs / "empty").mkdir(exist_ok=True)
    (runs / "empty/config.toml").write_text((runs / "full/config.toml").read_text())
    for name, said in (("nowhere", "not the folder of a run"), ("empty", "has no checkpoint")):
        code, _, err = export(name)
        assert (code, err.startswith(f"debate: {name}: {said}")) == (2, True)
    assert not (runs / "empty/export").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["full", "lora"])
def test_an_exported_judge_selects_as_the_run_itself(export, debate_command, name):
    code, out, err = export(name, "--judge", "--out", f"judge-{name}")
    assert code == 0, err
    assert f"--judge judge-{name}" in out
    assert {"judge.toml", "prompts.toml", "config.json"} <= {p.name for p in Path(f"judge-{name}").iterdir()}
    answers = []
    for judge in ([], ["--judge", f"judge-{name}"]):
        words = ("solve", name, "What is 3 + 4?", "--strategy", "swiss", "--samples", "5", *judge)
        code, out, err = debate_command(*words)
        assert code == 0, err
        answers.append({k: v for k, v in json.loads(out).items() if k != "seconds"})
    assert answers[0] == answers[1]
