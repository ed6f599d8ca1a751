"""``debate inspect prompts``: what a recipe sends, in text and tokens, and where two of them differ."""

import json

import pytest


@pytest.fixture
def shown(debate_command):
    def call(*words: str) -> str:
        done = debate_command("inspect prompts", *words)
        assert done.code == 0, done.err
        return done.out

    return call


def test_a_base_model_is_sent_exactly_this(shown):
    text = shown("rlvr/tiny", "--question", "Target 10. Numbers 4 6.", "--tokens")
    assert "== round 0, opening, 9 tokens: temperature 1.0, max_tokens 40, stop ('[Question]'," in text
    assert "\nQuestion: Target 10. Numbers 4 6.\nAnswer:\n==\n" in text
    assert ":' Target'" in text
    assert "training and evaluation: the same prompts" in text


def test_every_kind_of_turn_of_a_debate_is_there(shown, tmp_path):
    path = tmp_path / "prompts.json"
    text = shown("quickstart", "--json", str(path))
    names = [prompt["name"] for prompt in json.loads(path.read_text())["prompts"]]
    assert names == ["round 0, opening", "round 1, debate", "round 2, ballot"]
    assert text.count("== round") == 3
    assert "M4: (what agent 0 wrote in round 0)" in text  # although the vocabulary lacks these words
    assert "<|unknown|>" not in text


def test_two_recipes_differ_line_by_line(shown):
    text = shown("rlvr/tiny", "quickstart", "--question", "Target 10. Numbers 4 6.")
    assert "rlvr/tiny and quickstart: different prompts" in text
    assert "  -Question: Target 10. Numbers 4 6." in text
    assert "  round 1, debate: only there" in text


def test_a_suite_is_compared_set_by_set(shown, tmp_path):
    suite = tmp_path / "suite.toml"
    suite.write_text(
        '[all]\ndirect = true\n[sets.same]\nheld_out = {kind = "pair_sum"}\n'
        '[sets.other]\nheld_out = {kind = "pair_sum"}\ndebate = {prompts = "minerva", temperature = 0.0}\n'
    )
    words = ("model.tiny.fallback=ascii", "--suite", str(suite), "--question", "Target 10. Numbers 4 6.")
    text = shown("rlvr/tiny", *words)
    assert f"training and same of {suite}: the same prompts" in text
    assert f"training and other of {suite}: different prompts" in text
    assert "temperature 1.0 and 0.0" in text
    assert "  +Problem:" in text


def test_without_data_and_tokenizer_a_stand_in_says_so(shown, tmp_path):
    data, model = f"env.path={tmp_path / 'none.jsonl'}", f"model.name_or_path={tmp_path}"
    text = shown("rlvr/tiny", data, "env.kind=file", model, "model.tiny=none", "warm_start=none")
    assert "the data cannot be read" in text
    assert "no tokenizer is available" in text
    assert "Question: What is 7 + 5?\nAnswer:" in text
