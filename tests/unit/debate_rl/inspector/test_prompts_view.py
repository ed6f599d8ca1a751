"""What a turn read, on every screen; and a line where the record does not tell it."""

import io
import json
import shutil
import sys
from pathlib import Path

import tomli_w
from msgspec.structs import replace
from rich.console import Console
from tokenizers import Tokenizer, decoders, models

from debate import DebateConfig, Problem, hold_debate, run_debates
from debate.concurrency import run_async
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.rendering import raw_prompt
from debate.prompting.texts import prompt_path
from debate.types import TurnId
from debate_rl.commands.play import Stage
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.evaluation.folder import IDENTITY
from debate_rl.inference.decoding import fast_backend
from debate_rl.inspector.views import debate_view
from debate_rl.inspector.views.prompts import DebatePrompts, prompt_blocks
from debate_rl.runs.folder import plain_config
from debate_rl.runs.provenance import prompts_checksum
from debate_rl.warm_start.tokenizer import build_tokenizer, tiny_vocabulary
from transcripts import Record

from .conftest import printed_debate

PROBLEM = Problem("p", "What is 2 + 2?\x1b[2J", "4")
SUMMARY = {"enabled": True, "max_tokens": 9}


def say(request):
    return "gist" if request.turn.agent < 0 else f"<solution>sol{request.turn}</solution>"


def held(**config):
    policy = ScriptedPolicy(say)
    [debate] = run_debates([PROBLEM], policy, DebateConfig(num_rounds=1, **config), seed=5)
    return debate, policy.requests


def completed(debate, **changes):
    """The debate with other fields in all completions."""
    turns = (replace(turn, completion=replace(turn.completion, **changes)) for turn in debate.turns)
    return replace(debate, turns=tuple(turns))


def run_with(folder: Path, checksums, changed=()) -> Path:
    facts = {"data": checksums, "starts": [{"changed": {key: [1, 2] for key in changed}}]}
    (folder / "run.json").write_text(json.dumps(facts))
    return folder


def text_of(debate, run, **options):
    return printed_debate(Record(debate, 0, "p"), prompts=DebatePrompts(debate, run), **options)


def test_the_prompts_of_a_run_are_known_by_the_checksum_of_its_prompt_set(tmp_path):
    debate, requests = held()
    known = {"prompts: default": prompts_checksum("default")}
    prompts = DebatePrompts(debate, run_with(tmp_path, known))
    assert prompts.note == ""
    assert [prompts.of(one.turn).messages for one in requests] == [one.messages for one in requests]


def test_a_prompt_set_that_is_another_today_is_not_shown(tmp_path):
    debate, _ = held()
    known = {"prompts: default": prompts_checksum("default")}
    for facts, changed, words in (
        ({"prompts: default": "other"}, (), "has changed since the run"),
        (known, ("data: prompts: default",), "was changed during the run"),
    ):
        prompts = DebatePrompts(debate, run_with(tmp_path, facts, changed))
        assert words in prompts.note
        assert prompts.of(TurnId(0, 0)).messages == ()
        text = printed_debate(Record(debate, 0, "p"), prompts=prompts)
        assert text.count("cannot be rebuilt exactly") == 1
        assert "prompt, user" not in text


def test_without_a_record_of_it_a_shipped_set_is_shown_with_a_note(tmp_path):
    debate, requests = held()
    prompts = DebatePrompts(debate, tmp_path)
    assert prompts.note.startswith("prompts by the current prompt set 'default'; the run does not")
    assert prompts.of(TurnId(0, 0)).messages == requests[0].messages
    for text in ("", "[1]", '{"data": 3, "starts": {"a": 1}}', '{"starts": [7]}'):
        (tmp_path / "run.json").write_text(text)
        assert DebatePrompts(debate, tmp_path).note == prompts.note


def test_an_own_prompt_set_is_read_only_where_the_run_knows_its_checksum(tmp_path, monkeypatch):
    own = tmp_path / "own.toml"
    shutil.copy(prompt_path("tiny"), own)
    debate, requests = held(prompts=str(own))
    known = {str(own): prompts_checksum(str(own))}
    prompts = DebatePrompts(debate, run_with(tmp_path, known))
    assert prompts.of(TurnId(2, 0)).messages == requests[2].messages

    with monkeypatch.context() as patched:
        patched.setattr("debate_rl.inspector.views.prompts.prompts_checksum", None)  # nothing is read
        told = DebatePrompts(debate, run_with(tmp_path, {})).note
    assert "has no checksum of its prompt set" in told
    own.write_text(own.read_text() + "\n")
    assert "has changed since the run" in DebatePrompts(debate, run_with(tmp_path, known)).note
    own.unlink()
    assert "cannot be read here" in DebatePrompts(debate, run_with(tmp_path, known)).note


def test_plain_lines_have_each_prompt_before_its_reply():
    debate, requests = held(summary=SUMMARY)
    text = text_of(debate, None)
    assert text.count("prompt, user:\n") == len(requests) == 7
    assert "<U+001B>[2J" not in text.split("prompt, user:")[1]  # a prompt has no escape sequence at all
    lines = text.splitlines()
    at, system = lines.index("prompt, system:"), requests[0].messages[0].content.splitlines()
    assert "turn 0.0" in "".join(lines[at - 4 : at])
    assert lines[at + 1 : at + 1 + len(system)] == [("    " + line).rstrip() for line in system]
    assert "prompt" not in printed_debate(Record(debate, 0, "p"))


def test_json_has_the_messages(tmp_path):
    debate, requests = held(summary=SUMMARY)
    shown = json.loads(text_of(debate, tmp_path, as_json=True))
    first = [{"role": one.role, "content": one.content} for one in requests[0].messages]
    assert (shown["turns"][0]["prompt"], shown["turns"][0]["prompt_unknown"]) == (first, "")
    assert len(shown["summaries"][0]["prompt"]) == 1
    assert shown["prompts_note"].startswith("prompts by the current")
    assert "prompt" not in json.loads(printed_debate(Record(debate, 0, "p"), as_json=True))["turns"][0]


def test_play_shows_them_on_demand():
    def shown(*, prompts):
        out, policy = io.StringIO(), ScriptedPolicy(say)
        config = DebateConfig(num_rounds=1, summary=SUMMARY)
        stage = Stage(Console(file=out, width=100), config.agent_personas, None, prompts=prompts)
        run_async(hold_debate(PROBLEM, policy, config, seed=5, on_said=stage.show))
        return out.getvalue(), policy.requests

    text, requests = shown(prompts=True)
    assert text.count("─ prompt, user ─") == len(requests)
    assert text.index("prompt, system") < text.index("round 0")
    assert text.index("summary shown to all") < text.index("final ballot")
    assert "prompt, " not in shown(prompts=False)[0]


def test_a_page_names_the_summariser(tmp_path):
    debate, requests = held(summary=SUMMARY)
    prompts, view = DebatePrompts(debate, tmp_path), debate_view("0.0", Record(debate, 0, "p"))
    note, *texts = prompt_blocks(view, prompts, TurnId(0, 1))
    assert note.words.startswith("prompts by the current prompt set")
    assert [text.label for text in texts][-1] == "summariser: prompt, user"
    assert texts[-1].text in {request.messages[-1].content for request in requests}


def test_no_code_of_a_run_is_imported(tmp_path):
    debate, _ = held()
    protocol = debate.protocol.model_copy(update={"personas": "antigravity:NAMES"})
    prompts = DebatePrompts(replace(debate, protocol=protocol), tmp_path)
    assert prompts.of(TurnId(0, 0)).messages
    assert "antigravity" not in sys.modules


def test_a_prompt_to_a_raw_model_is_shown_as_it_was_sent_with_its_tokens(tmp_path):
    debate, requests = held(prompts="tiny")
    (tmp_path / "config.toml").write_text("[model]\nchat = false\n")
    prompts = DebatePrompts(debate, run_with(tmp_path, {"prompts: tiny": prompts_checksum("tiny")}))
    shown = [prompts.of(one.turn) for one in requests]
    assert [one.text for one in shown] == [raw_prompt(one.messages, "tiny") for one in requests]
    assert {one.tokens for one in shown} == {0}  # this policy counted none
    assert "prompt, as sent, 1,234 tokens" in text_of(completed(debate, prompt_count=1234), tmp_path)


def test_with_a_chat_template_the_text_is_decoded_by_the_tokenizer_of_an_export(tmp_path):
    tokenizer = Tokenizer(models.WordLevel({"<|user|>": 0, "two\n": 1, "+2": 2}, unk_token="+2"))
    tokenizer.decoder = decoders.Fuse()
    debate = completed(held()[0], prompt_tokens=(0, 1, 2))
    (tmp_path / "config.toml").write_text('[model]\nname_or_path = "nobody/has-this"\n')
    assert DebatePrompts(debate, tmp_path).of(TurnId(0, 0)).text == ""
    text = text_of(debate, tmp_path)
    assert "The prompt had 3 tokens; the tokenizer to show them is not on this machine." in text
    assert "prompt, as sent" not in text
    (tmp_path / "export").mkdir()
    tokenizer.save(str(tmp_path / "export/tokenizer.json"))
    after = DebatePrompts(debate, tmp_path).of(TurnId(0, 0))
    assert (after.text, after.tokens) == ("<|user|>two\n+2", 3)
    assert "prompt, as sent" in text_of(debate, tmp_path)
    (tmp_path / "export/tokenizer.json").write_text("{")
    assert DebatePrompts(debate, tmp_path).of(TurnId(0, 0)).text == ""


def test_a_tiny_model_has_its_tokenizer_in_the_configuration(tmp_path):
    config = load_config(Config, "quickstart")
    own = fast_backend(build_tokenizer(tiny_vocabulary(config), fallback=config.model.tiny.fallback))
    debate = completed(held()[0], prompt_tokens=tuple(own.encode("<|user|>Target 8.").ids))
    (tmp_path / "config.toml").write_text(tomli_w.dumps(plain_config(config)))
    part = tmp_path / "evaluations/one/debates"
    part.mkdir(parents=True)
    (part.parent / IDENTITY).write_text(json.dumps({"of": {"model": {"tiny": {}}}}))
    for folder in (tmp_path, part):
        assert DebatePrompts(debate, folder).of(TurnId(0, 0)).text == "<|user|>Target 8."
    (tmp_path / "config.toml").write_text("[model.tiny]\nlayers = 'many'\n")
    assert DebatePrompts(debate, tmp_path).of(TurnId(0, 0)).text == ""


def test_the_prompts_of_an_evaluation_are_known_by_what_it_says_of_itself(tmp_path):
    debate, requests = held()
    facts = {"of": {"prompts": prompts_checksum("default"), "model": {"chat": False}}}
    (tmp_path / "evaluation.json").write_text(json.dumps(facts))
    (tmp_path / "debates").mkdir()
    prompts = DebatePrompts(debate, tmp_path / "debates")
    assert prompts.note == ""
    assert prompts.of(TurnId(0, 0)).text == raw_prompt(requests[0].messages, "default")
    (tmp_path / "evaluation.json").write_text('{"of": {"prompts": "other"}}')
    assert "has changed since the run" in DebatePrompts(debate, tmp_path / "debates").note
