import io
import json
import re
import sys

import pytest
from msgspec.structs import replace

import debate_rl
from debate import Problem
from debate.policies.scripted import ScriptedPolicy
from debate_rl.inference.tools import ToolPolicy
from debate_rl.sampling.difficulty import question_checksum

from .conftest import write_recipe

RECIPE = {
    "env": {"kind": "file", "path": "train.jsonl"},
    "held_out": {"kind": "file", "path": "train.jsonl", "limit": 3},
    "debate": {"num_agents": 3, "num_rounds": 1, "max_tokens": 60, "context_tokens": 8000},
    "model": {"policy": "openai", "name_or_path": "any", "server": {"base_url": "http://127.0.0.1:9/v1"}},
}
ROWS = [{"id": f"n{n}", "question": f"What is {n} + 2?", "answer": f"{n + 2}"} for n in range(5)]


class Adds(ScriptedPolicy):
    """Adds two numbers, one too many in every fourth solution; ``stop_after`` requests it is interrupted."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        super().__init__(self.reply, tokens=True)

    def reply(self, request):
        if self.stop_after is not None and len(self.requests) > self.stop_after:
            raise KeyboardInterrupt
        return self.said(request, request.messages[-1].content)

    def said(self, request, text):
        if "What is" not in text:
            return f"You said: {text}"
        number = int(text.rpartition("What is ")[2].split()[0])
        return f"<solution>\\boxed{{{number + 2 + (request.turn.agent % 4 == 3)}}}</solution>"


class Learns(Adds):
    """Wrong in two of three solutions; right in a debate where any work shown is right, and a true judge."""

    def said(self, request, text):
        right = int(re.search(r"What is (\d+)", text)[1]) + 2
        shown = dict(re.findall(r'<work agent="(\w+)" .*?boxed\{(.*?)\}', text, re.DOTALL))
        known, wrong = str(right) in shown.values() or request.seed % 3 == 0, right + 1 + request.seed % 2
        ranked = sorted(shown, key=lambda label: shown[label] != str(right))
        votes = f"<comparison>{' > '.join(ranked)}</comparison>" if len(ranked) > 1 else ""
        return f"<solution>\\boxed{{{right if known else wrong}}}</solution><evaluation>-</evaluation>{votes}"


@pytest.fixture
def solver(tmp_path, monkeypatch, debate_command):
    """Return solve(*arguments, stop_after=None, piped="", speaker=Adds) -> (code, lines, stderr, policy)."""
    monkeypatch.chdir(tmp_path)
    write_recipe(tmp_path / "r.toml", RECIPE)
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))

    def call(*arguments, stop_after=None, piped="", speaker=Adds):
        policy = speaker(stop_after)
        monkeypatch.setattr("debate_rl.evaluation.asking.open_policy", lambda *_: policy)
        monkeypatch.setattr(sys, "stdin", io.StringIO(piped))
        code, out, err = debate_command(*arguments)
        return code, out, err, policy

    return call


@pytest.fixture
def climb(solver, tmp_path):
    """Return climb(*words, stop_after=None) -> (code, lines, stderr, policy, figures or None)."""

    def call(*words, stop_after=None):
        more = ("debate.num_rounds=2", "debate.max_tokens=200", "held_out.limit=5", "--json", "l.json")
        found = solver("eval ladder", *words, *more, stop_after=stop_after, speaker=Learns)
        file = tmp_path / "l.json"
        return *found, json.loads(file.read_text())[0] if file.exists() else None

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


class Mumbles(Adds):
    """Never says an answer, and is cut off if it was given few tokens."""

    async def sample(self, request):
        reply = await super().sample(request)
        return replace(
            reply, text="<solution>5</solution>", stop_reason="stop" if request.max_tokens > 9 else "length"
        )


@pytest.mark.parametrize(("tokens", "cut"), [(100, 0), (9, 2)])
def test_no_answer_says_why(solver, tokens, cut):
    words = ("--samples", "2", f"debate.max_tokens={tokens}")
    _, _, err, _ = solver("solve", "r.toml", "What is 3 + 2?", *words, speaker=Mumbles)
    why = f"none of 2 solutions states an answer in the required form; {cut} ended at debate.max_tokens"
    assert err.startswith(f"no answer: {why}; ")


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
    _, out, _, _ = solver("solve", "r.toml", "train.jsonl", "--strategy", "greedy", "--problems", "2")
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["n0", "n1"]


@pytest.mark.parametrize(
    "text", ["What is 3 + 2?\n\nWhat is 4 + 2?\n", json.dumps({"question": "What is 3 + 2?"})]
)
def test_a_pipe_has_lines_or_rows(solver, text):
    code, out, _, policy = solver("solve", "r.toml", "-", "--strategy", "greedy", piped=text)
    assert code == 0
    assert [json.loads(line)["answer"] for line in out.splitlines()] == ["5", "6"][: 1 + ("4" in text)]
    asked = policy.requests[0].messages[-1].content
    assert "\\boxed{answer}" in asked  # with no gold answer known


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
    assert "2 answers are already in the file; 3 problems are left" in err
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert sorted(row["id"] for row in rows[1:]) == [f"n{n}" for n in range(5)]
    assert rows[0]["of"]["strategy"] == "greedy"
    code, _, _, policy = solver(*words)
    assert (code, policy.requests) == (0, [])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("x --strategy majorty", "--strategy majorty: is unknown; did you mean 'majority'?"),
        ("x --tokens 100 --strategy swiss", "is too small for a solution and a ballot"),
        ("x --seconds 0", "--seconds 0: "),
        ("x debate.num_agents=2 --strategy swiss", "debate.num_agents = 2"),
        ("none.csv", "none.csv: there is no such file"),
        ("./mine", "./mine: there is no such file"),
        ("empty.txt", "empty.txt: is empty"),
        ("-", "standard input: is empty"),
        ("x --out train.jsonl", "train.jsonl: "),
        ("What_is_1+2?" + "x" * 1_000_000, "its shortest prompt (opening) has 333"),
    ],
)
def test_a_mistake_is_one_line(solver, tmp_path, words, line):
    (tmp_path / "empty.txt").write_text("\n \n")
    before = (tmp_path / "train.jsonl").read_bytes()
    code, _, err, _ = solver("solve", "r.toml", *words.split())
    assert code == 2
    assert line in err.splitlines()[-1], err
    assert before == (tmp_path / "train.jsonl").read_bytes()


def test_answers_of_other_settings_or_of_none_are_refused(solver, tmp_path):
    words = "solve", "r.toml", "train.jsonl", "--strategy", "greedy", "--out", "a.jsonl"
    assert solver(*words)[0] == 0
    code, _, err, _ = solver(*words, "--seed", "1")
    assert code == 2
    assert "a.jsonl: its answers have seed = 0, but this command has seed = 1; choose another --out" in err
    for line in ('{"format": 2}', "[]", '{"format": 1, "of": {}}'):
        (tmp_path / "a.jsonl").write_text(f"{line}\n")
        code, _, err, _ = solver(*words)
        assert (code, err.count("\n"), "a.jsonl" in err) == (2, 1, True), err


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
    words = "eval", "r.toml", "--strategies", "greedy,majority,debate_majority", "--json", "e.json"
    words += "--samples", "5"
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
    opened, policy = [], Adds()

    def open_policy(config, _):
        opened.append(config.debate.tools)
        return ToolPolicy(policy, programs=None)

    monkeypatch.setattr("debate_rl.evaluation.asking.open_policy", open_policy)
    words = ("eval", "r.toml", "--strategies", "greedy,swiss,tir", "--samples", "2", "--out", "e1")
    code, _, err = debate_command(*words)
    assert code == 0, err
    assert opened == ["python"]
    stops = {"```\n" in request.stop for request in policy.requests}
    assert stops == {True, False}  # programs run for tir alone
    kept = sorted(path.name for path in (tmp_path / "e1").glob("*.jsonl"))
    assert kept == ["replies.jsonl", "replies_tools.jsonl"]


@pytest.mark.slow
def test_a_ladder_has_every_rung_at_equal_cost(climb, tmp_path):
    code, out, err, first, found = climb("r.toml", "--samples", "4")
    assert code == 0, err
    rungs = {rung["strategy"]: rung for rung in found["strategies"]}
    assert len(rungs) == 9
    assert rungs["debate_majority"]["accuracy"]["value"] > rungs["majority"]["accuracy"]["value"]
    for rung in rungs.values():
        for budget, compared in rung["equal"].items():
            cost = rung["generated"] + (rung["read"] if budget == "total" else 0)
            assert compared["samples"] == pytest.approx(max(1, cost / found["one_solution"][budget]))
    [folder] = (tmp_path / "evaluations").glob("*/model-*")
    assert json.loads((folder / "figures.json").read_text()).items() <= found.items()
    code, again, _, policy, _ = climb("r.toml", "--samples", "4")
    assert (again, policy.requests) == (out, [])  # the replies are kept
    lines = (folder / "replies.jsonl").read_text().splitlines()
    assert len({json.loads(line)["request"] for line in lines}) == len(lines) == len(first.requests)


@pytest.mark.slow
def test_a_ladder_that_was_stopped_goes_on_and_asks_nothing_twice(climb, tmp_path):
    words = ("r.toml", "--rungs", "greedy,debate_winner", "--samples", "2", "--out")
    code, _, err, *_ = climb(*words, "l", stop_after=20)
    assert (code, "l keeps " in err) == (130, True)
    code, _, _, rest, stopped = climb(*words, "l")
    assert code == 0
    asked = [json.loads(line)["request"] for line in (tmp_path / "l/replies.jsonl").read_text().splitlines()]
    assert len(asked) == len(set(asked)) == 20 + len(rest.requests)
    assert climb(*words, "other")[-1] == stopped


def test_rungs_that_the_protocol_does_not_allow_are_said_and_left_out(climb):
    words = ("r.toml", "debate.num_agents=2", "debate.final_ballot=false")
    code, out, _, _, found = climb(*words, "--problems", "2", "--samples", "2")
    assert (code, found["problems"]) == (0, 2)
    assert {"best_of_n", "swiss"} == found["refused"].keys()
    assert "swiss: left out:" in out


def test_chat_goes_on_forgets_and_ends(solver, tmp_path):
    said = "hello\n\nagain\n/reset\nonce more\n/quit\nnever\n"
    more = ("--system", "Be brief.", "--json", "c.json")
    code, out, _, policy = solver("solve chat", "r.toml", *more, piped=said)
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
    assert f"chat: {tiny} is a tiny model" in err


def test_chat_forgets_the_oldest_where_the_context_is_full(solver, monkeypatch):
    monkeypatch.setattr(Adds, "context_tokens", 120, raising=False)
    said = "a" * 50 + "\n" + "b" * 50 + "\n" + "c" * 400 + "\n"
    code, out, _, policy = solver("solve chat", "r.toml", piped=said)
    assert code == 0
    assert [len(request.messages) for request in policy.requests] == [1, 3]
    assert out.splitlines()[-1].startswith(
        "(not sent: a message of 134 tokens is too long for the context of 120"
    )


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
    more = ("debate.num_rounds=2", "--out", "played")
    code, _, err, _ = solver("solve play", "r.toml", "What is 3 + 2?", *more)
    assert (code, "debate.num_rounds" in err) == (2, True)
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
    assert "50 problems take 43 s, within the 5 h available" in out
    (tmp_path / "s.json").write_text('{"tokens_per_second": 100.0, "tokens_generated": 400, "problems": 4}')
    code, out, _ = debate_command(*words, "--measured", "s.json")
    assert (
        "measured:    100 tokens per second, 100 tokens per problem (measured): 3,600 problems per hour"
        in out
    )
    code, out, _ = debate_command(*words)
    assert "measured:    nothing: --speed or --measured gives problems per hour" in out
