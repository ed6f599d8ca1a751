"""``debate solve``, ``chat`` and ``eval --strategies``: what they print, keep, go on with and refuse."""

from __future__ import annotations

import io
import json
import sys

import pytest

import debate_rl
from debate import Problem
from debate.policies.scripted import ScriptedPolicy
from debate_rl.sampling.difficulty import question_checksum

RECIPE = """
[env]
kind = "file"
path = "train.jsonl"
[held_out]
kind = "file"
path = "train.jsonl"
limit = 3
[debate]
num_agents = 3
num_rounds = 1
max_tokens = 60
context_tokens = 8000
[model]
policy = "openai"
name_or_path = "any"
server = { base_url = "http://127.0.0.1:9/v1" }
"""
ROWS = [{"id": f"n{n}", "question": f"What is {n} + 2?", "answer": f"{n + 2}"} for n in range(5)]


class Adds(ScriptedPolicy):
    """Adds two numbers, one too many in every fourth solution; ``stop_after`` requests it is interrupted."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        super().__init__(self.reply, tokens=True)

    def reply(self, request):
        if self.stop_after is not None and len(self.requests) > self.stop_after:
            raise KeyboardInterrupt
        text = request.messages[-1].content
        if "What is" not in text:
            return f"You said: {text}"
        number = int(text.rpartition("What is ")[2].split()[0])
        return f"<solution>\\boxed{{{number + 2 + (request.turn.agent % 4 == 3)}}}</solution>"


@pytest.fixture
def solver(tmp_path, monkeypatch, debate_command):
    """Return solve(*arguments, stop_after=None, piped="") -> (code, lines, stderr, policy)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.toml").write_text(RECIPE)
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))

    def call(*arguments, stop_after=None, piped=""):
        policy = Adds(stop_after)
        monkeypatch.setattr("debate_rl.evaluation.asking.open_policy", lambda *_: policy)
        monkeypatch.setattr(sys, "stdin", io.StringIO(piped))
        code, out, err = debate_command(*arguments)
        return code, out, err, policy

    return call


def test_a_problem_is_answered_with_shares_and_costs(solver):
    code, out, err, _ = solver("solve", "r.toml", "What is 3 + 2?", "--samples", "4")
    [line] = map(json.loads, out.splitlines())
    problem = Problem(line["id"], "What is 3 + 2?", "", kind="expression", source="solve")
    assert (line["question"], line["checksum"]) == ("What is 3 + 2?", question_checksum(problem))
    assert (code, line["answer"], line["right"], line["samples"]) == (0, "5", None, 3)
    assert (line["ended"], line["shares"]) == ("settled", [["5", 1.0]])
    assert line["tokens_generated"] == 3 * len("<solution>\\boxed{5}</solution>")
    assert err.startswith("5 (100% of the weight); ")


@pytest.mark.parametrize("text", ["1/2+1/3", "3/x=4/5", "17.25", "x^2/y"])
def test_a_problem_without_blanks_is_no_file(solver, text):
    code, out, _, _ = solver("solve", "r.toml", text, "--strategy", "greedy")
    assert (code, json.loads(out)["question"]) == (0, text)


def test_a_question_moves_no_cursor_and_is_read_back_as_it_was(solver):
    text = "\x9b31mWhat is 3 + 2?\u202e\x7f\U000e0101"
    code, out, _, _ = solver("solve", "r.toml", text, "--strategy", "greedy")
    assert (code, json.loads(out)["question"]) == (0, text)
    assert out.rstrip("\n").isprintable()


def test_a_file_is_graded_and_summed_up(solver, tmp_path):
    code, out, err, _ = solver("solve", "r.toml", "train.jsonl", "--strategy", "greedy", "--json", "s.json")
    lines = {line["id"]: line for line in map(json.loads, out.splitlines())}
    assert code == 0
    assert {name: line["answer"] for name, line in lines.items()} == {f"n{n}": str(n + 2) for n in range(5)}
    assert "5 problems: 5 answered, 1.00 right of 5 graded" in err
    assert json.loads((tmp_path / "s.json").read_text())["right"]["value"] == 1.0


@pytest.mark.parametrize(
    "text", ["What is 3 + 2?\n\nWhat is 4 + 2?\n", json.dumps({"question": "What is 3 + 2?"})]
)
def test_a_pipe_has_lines_or_rows(solver, text):
    code, out, _, policy = solver("solve", "r.toml", "-", "--strategy", "greedy", piped=text)
    assert code == 0
    assert [json.loads(line)["answer"] for line in out.splitlines()] == ["5", "6"][: 1 + ("4" in text)]
    assert (
        "\\boxed{answer}" in policy.requests[0].messages[-1].content
    )  # asked for, with no gold answer known


def test_a_file_of_answers_goes_on_and_asks_nothing_twice(solver, tmp_path):
    words = "solve", "r.toml", "train.jsonl", "--strategy", "greedy", "--out", "a.jsonl", "--at-once", "1"
    code, _, err, _ = solver(*words, stop_after=2)
    assert code == 130
    assert "a.jsonl keeps its answers; the same command resumes" in err
    kept = (tmp_path / "a.jsonl").read_text().splitlines()
    assert len(kept) == 3  # the head, and two answers
    (tmp_path / "a.jsonl").write_text("\n".join(kept) + '\n{"id": "n2", "que')  # as a kill leaves it
    code, out, err, policy = solver(*words)
    assert (code, out, len(policy.requests)) == (0, "", 3)
    assert "2 answers are there; 3 problems are left" in err
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert sorted(row["id"] for row in rows[1:]) == [f"n{n}" for n in range(5)]
    assert rows[0]["of"]["strategy"] == "greedy"
    code, _, _, policy = solver(*words)
    assert (code, policy.requests) == (0, [])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["x", "--strategy", "majorty"], "--strategy majorty: is not known; did you mean 'majority'?"),
        (["x", "--tokens", "59"], "--tokens 59: is too small for one solution, which may have 60"),
        (["x", "--tokens", "100", "--strategy", "swiss"], "is too small for a solution and a ballot"),
        (
            ["x", "--tokens", "300", "--strategy", "debate_winner"],
            "too small for one debate, which may have 360",
        ),
        (["x", "--seconds", "0"], "--seconds 0: needs more than 0"),
        (["x", "--seconds", "1", "--hours", "1"], "--seconds and --hours: give one of them"),
        (["x", "--samples", "0"], "--samples 0: needs 1 or more"),
        (["x", "--judge", "r.toml"], "--judge r.toml: majority asks no judge"),
        (["x", "debate.num_agents=2", "--strategy", "swiss"], "judge without ballots: debate.num_agents = 2"),
        (["none.jsonl"], "none.jsonl: there is no such file"),
        (["none.TXT"], "none.TXT: there is no such file"),
        (["none.csv"], "none.csv: there is no such file"),
        (["problems/mine"], "problems/mine: there is no such file"),
        (["./mine"], "./mine: there is no such file"),
        (["/dev/null"], "/dev/null: is not a plain file; name one, or give - and a pipe"),
        (["empty.txt"], "empty.txt: is empty; it needs at least one problem"),
        (["empty.jsonl"], "empty.jsonl: the data set is empty"),
        (["-"], "standard input: is empty"),
        (["x", "--out", "train.jsonl"], "train.jsonl: holds something else than answers of debate solve"),
        (["What is 1 + 2? " + "x" * 1_000_000], "its shortest prompt (opening) has 333"),
    ],
)
def test_a_mistake_is_one_line(solver, tmp_path, words, line):
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "empty.jsonl").write_text("")
    before = (tmp_path / "train.jsonl").read_bytes()
    code, _, err, _ = solver("solve", "r.toml", *words)
    assert code == 2
    assert line in err.splitlines()[-1], err
    assert before == (tmp_path / "train.jsonl").read_bytes()


def test_answers_of_other_settings_are_refused(solver):
    words = "solve", "r.toml", "train.jsonl", "--strategy", "greedy", "--out", "a.jsonl"
    assert solver(*words)[0] == 0
    code, _, err, _ = solver(*words, "--seed", "1")
    assert code == 2
    assert "a.jsonl: its answers are of seed = 0, and these would be of 1; choose another --out" in err


def test_a_problem_that_does_not_fit_is_refused_and_the_others_go_on(solver, tmp_path):
    (tmp_path / "p.txt").write_text("What is 1 + 2?\n" + "What is 2 + 2? " * 4000 + "\nWhat is 3 + 2?\n")
    code, out, err, _ = solver("solve", "r.toml", "p.txt", "--strategy", "greedy")
    lines = list(map(json.loads, out.splitlines()))
    assert code == 0
    assert sorted(line["answer"] or "" for line in lines) == ["", "3", "5"]
    [refused] = [line["refused"] for line in lines if line["answer"] is None]
    assert "its shortest prompt (opening) has" in refused
    assert "1 refused" in err


def test_python_solves_in_one_line(solver, monkeypatch):
    policy = Adds()
    monkeypatch.setattr("debate_rl.evaluation.asking.open_policy", lambda *_: policy)
    answers = debate_rl.solve("r.toml", ["What is 3 + 2?", "What is 4 + 2?"], strategy="greedy")
    assert [one.answer for one in answers] == ["5", "6"]


def test_a_table_has_strategies_beside_self_consistency_at_equal_tokens(solver, tmp_path):
    words = (
        "eval",
        "r.toml",
        "strategies=greedy,majority,debate_majority",
        "--json",
        "e.json",
        "--samples",
        "5",
    )
    code, out, _, _ = solver(*words)
    [found] = json.loads((tmp_path / "e.json").read_text())
    rows = {row["strategy"]: row for row in found["strategies"]}
    equal = {name: row["equal"]["generated"] for name, row in rows.items()}
    assert code == 0
    assert "self-consistency" in out
    assert equal["greedy"]["samples"] == 1
    assert (equal["majority"]["samples"], rows["majority"]["settled"]) == (3, 1.0)  # 3 of 5 agree
    assert equal["debate_majority"]["samples"] == 3  # three agents, no ballot
    assert rows["majority"]["accuracy"]["value"] == equal["majority"]["self_consistency"]["value"] == 1.0
    _, again, _, policy = solver(*words)
    assert (again, policy.requests) == (out, [])  # the replies are kept


def test_strategies_with_and_without_programs_share_one_model(solver, tmp_path, monkeypatch, debate_command):
    from debate_rl.inference.tools import ToolPolicy

    opened = []
    policy = Adds()

    def open_policy(config, _):
        opened.append(config.debate.tools)
        return ToolPolicy(policy, programs=None)

    monkeypatch.setattr("debate_rl.evaluation.asking.open_policy", open_policy)
    words = ("eval", "r.toml", "strategies=greedy,swiss,tir", "--samples", "2", "--out", "e1")
    code, _, err = debate_command(*words)
    assert code == 0, err
    assert opened == ["python"]
    stops = {"```\n" in request.stop for request in policy.requests}
    assert stops == {True, False}  # programs run for tir alone
    assert sorted(path.name for path in (tmp_path / "e1").glob("*.jsonl")) == [
        "replies.jsonl",
        "replies_tools.jsonl",
    ]


def test_chat_goes_on_forgets_and_ends(solver, tmp_path):
    said = "hello\n\nagain\n/reset\nonce more\n/quit\nnever\n"
    code, out, _, policy = solver(
        "solve chat", "r.toml", "--system", "Be brief.", "--json", "c.json", piped=said
    )
    assert (code, out) == (0, "You said: hello\nYou said: again\nYou said: once more\n")
    assert [len(request.messages) for request in policy.requests] == [2, 4, 2]
    first = policy.requests[0]
    assert (first.max_tokens, first.temperature, first.top_p) == (512, 0.7, 0.9)
    assert len({request.seed for request in policy.requests}) == 3
    assert [one["role"] for one in json.loads((tmp_path / "c.json").read_text())] == ["user", "assistant"] * 3


@pytest.mark.parametrize("tiny", ["quickstart", "r.toml"])
def test_a_tiny_model_does_not_chat(solver, tiny):
    settings = ["debate.prompts=tiny"] if tiny == "r.toml" else []
    code, out, err, policy = solver("solve chat", tiny, *settings, piped="hello\n")
    assert (code, out, err.count("\n"), policy.requests) == (2, "", 1, [])
    assert f"chat: {tiny} is a tiny model that knows its own problems and no English" in err


def test_chat_forgets_the_oldest_where_the_context_is_full(solver, monkeypatch):
    monkeypatch.setattr(Adds, "context_tokens", 120, raising=False)
    code, out, _, policy = solver(
        "solve chat", "r.toml", piped="a" * 50 + "\n" + "b" * 50 + "\n" + "c" * 400 + "\n"
    )
    assert code == 0
    assert [len(request.messages) for request in policy.requests] == [1, 3]
    assert out.splitlines()[-1].startswith("(a message of 134 tokens is too long for the context of 120")


def test_a_played_debate_is_kept_where_inspect_and_replay_read_it(solver, tmp_path, debate_command):
    for question in ("What is 3 + 2?", "What is 4 + 2?"):
        code, out, _, _ = solver("solve play", "r.toml", question, "--answer", "5", "--out", "played")
        assert code == 0
        assert "winner" in out
    code, out, _ = debate_command("inspect", "played", "ls", "--json")
    assert code == 0
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["0.0", "1.0"]
    code, _, err = debate_command("replay", "played", "rewards.truth_weight=0.3")
    assert (code, err) == (0, "")
    code, _, err, _ = solver(
        "solve play", "r.toml", "What is 3 + 2?", "debate.num_rounds=2", "--out", "played"
    )
    assert code == 2
    assert "holds a run with another configuration: debate.num_rounds" in err
    assert not (tmp_path / "played/transcripts/step_000002.jsonl").exists()


@pytest.mark.slow
def test_a_plan_counts_what_fits_and_how_many_problems_an_hour(debate_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "solve", "quickstart", "--plan", "--gpus", "4xL4", "--bits", "8", "--json", "p.json"
    code, out, _ = debate_command(*words, "--speed", "900", "--problems", "50", "--hours", "5")
    plan = json.loads((tmp_path / "p.json").read_text())
    gib, token = 2**30, 2 * 2 * 2 * 2 * 32  # key and value, 2 bytes, 2 layers, 2 heads of 32
    assert code == 0
    assert (plan["weights_bytes"], plan["memory_bytes"]) == (304_768, 90 * gib)
    assert plan["cache_tokens"] == pytest.approx((0.9 * 90 * gib - 12 * gib - 304_768) / token, abs=1)
    assert plan["tokens_per_problem"] == 16 * 48
    assert plan["per_hour"] == 900 * 3600 / 768
    assert "50 problems take 43 s, within the 5 h there are" in out
    (tmp_path / "s.json").write_text('{"tokens_per_second": 100.0, "tokens_generated": 400, "problems": 4}')
    code, out, _ = debate_command(*words, "--measured", "s.json")
    assert "measured:    100 tokens a second, 100 tokens a problem (measured): 3,600 problems an hour" in out
    code, out, _ = debate_command(*words)
    assert "measured:    nothing: --speed or --measured gives problems an hour" in out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["--gpus", "4xL5"],
            "--gpus 4xL5: write how many of which, as in 4xL4; known: A10G, L4, L40S,",
        ),
        (["--bits", "5"], "--bits 5: is 16, 8 or 4"),
        (["--speed", "0"], "--speed 0: needs more than 0"),
        (["--measured", "none.json"], "none.json: No such file or directory"),
    ],
)
def test_a_plan_that_cannot_be_made_is_one_line(debate_command, words, line):
    code, _, err = debate_command("solve", "quickstart", "--plan", *words)
    assert code == 2
    assert line in err


def test_no_problem_is_one_line(debate_command):
    code, _, err = debate_command("solve", "quickstart")
    assert (code, err) == (2, "debate: solve: name a problem, a file of problems, or - for a pipe\n")
