"""Pass rates of training problems: what is counted, kept, gone on with, and trained on."""

import json

import pytest
import tomli_w

from debate.policies.scripted import ScriptedPolicy
from debate_rl.commands.passrate import measure, pass_rate_plan, problems_to_measure
from debate_rl.config import Config
from debate_rl.evaluation.play import Unopened
from debate_rl.sampling.difficulty import question_checksum, read_difficulty
from debate_rl.sampling.load_problems import load_run_problems

PROBLEMS = 6
TINY = {"hidden_size": 32, "layers": 1, "heads": 2, "intermediate_size": 48, "context_tokens": 256}
RECIPE = {
    "env": {"kind": "pair_sum", "levels": [1, 2], "limit": PROBLEMS},
    "held_out": {"limit": 0},
    "debate": {"num_agents": 1, "num_rounds": 1, "prompts": "tiny", "max_tokens": 16},
    "rewards": {"truth_weight": 1.0},
    "model": {"device": "cpu", "chat": True, "tiny": TINY},
}


class Solver(ScriptedPolicy):
    """Solves problem n in the first n of its samples, says nothing readable in the next, then is wrong."""

    def __init__(self, problems, stop_after=None):
        self.number = {problem.question: n for n, problem in enumerate(problems)}
        self.answer = {problem.question: problem.answer for problem in problems}
        self.seen, self.asked, self.stop_after = dict.fromkeys(self.number, 0), 0, stop_after
        super().__init__(self.reply)

    def reply(self, request):
        if self.asked == self.stop_after:
            raise KeyboardInterrupt
        self.asked += 1
        text = "\n".join(message.content for message in request.messages)
        question = next(question for question in self.number if question in text)
        sample, number = self.seen[question], self.number[question]
        self.seen[question] += 1
        if sample == number:
            return "<solution>no idea</solution>"
        answer = self.answer[question] if sample < number else "0 0"
        return f"<solution>\\boxed{{{answer}}}</solution>"


@pytest.fixture
def config(tmp_path):
    return Config.model_validate(RECIPE | {"run": {"dir": str(tmp_path / "run")}})


@pytest.fixture
def data(config):
    return problems_to_measure(config)


@pytest.fixture
def measured(config, data, tmp_path):
    """Return measured(solver, samples) -> the rows of the folder's replies and those of this solver."""

    def call(solver, samples=4):
        plan = pass_rate_plan(config, data, samples=samples, requests=None)
        return measure(plan, Unopened(lambda: solver), tmp_path)

    return call


def test_right_and_missing_samples_are_counted_by_problem(measured, data):
    rows = measured(Solver(data.train))
    assert [(row.right, row.missing) for row in rows] == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 0), (4, 0)]
    assert {row.samples for row in rows} == {4}
    assert [row.id for row in rows] == [problem.id for problem in data.train]
    assert rows[0].question == question_checksum(data.train[0])


def test_what_was_sampled_before_a_stop_is_not_sampled_again(measured, data):
    stopped, whole, more = Solver(data.train, stop_after=9), Solver(data.train), Solver(data.train)
    with pytest.raises(KeyboardInterrupt):
        measured(stopped)
    measured(whole)
    assert stopped.asked + whole.asked == 24
    assert {row.samples for row in measured(more, samples=6)} == {6}
    assert more.asked == 12


def test_the_command_writes_a_file_that_training_reads(debate_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.toml").write_text(tomli_w.dumps(RECIPE | {"run": {"dir": "runs/mine"}}))
    options = "recipe.toml", "--samples", "2", "--out", "rates.jsonl", "--json", "out.json"
    command = "eval", "passrate", *options
    done = debate_command(*command)
    assert done.code == 0, done.err
    measured = read_difficulty("rates.jsonl")
    assert measured.of["model"] == "tiny"
    assert measured.of["samples"] == 2
    assert "time" not in (tmp_path / "rates.jsonl").read_text()
    figures = json.loads((tmp_path / "out.json").read_text())["figures"]
    assert list(figures) == ["all", "level 1", "level 2"]
    assert figures["all"]["problems"] == PROBLEMS == len(measured.rows)
    before = (tmp_path / "rates.jsonl").read_bytes()
    assert debate_command(*command).code == 0
    assert (tmp_path / "rates.jsonl").read_bytes() == before
    env = RECIPE["env"] | {"difficulty": {"path": "rates.jsonl", "order": "hard_first"}}
    assert len(load_run_problems(Config.model_validate(RECIPE | {"env": env})).train) == PROBLEMS


def test_held_out_problems_are_measured_and_their_figures_stand_by_pass_rate(
    debate_command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    held_out = {"limit": 4, "direct": True}
    recipe = RECIPE | {"run": {"dir": "runs/mine"}, "held_out": held_out}
    (tmp_path / "recipe.toml").write_text(tomli_w.dumps(recipe))
    measured = debate_command(
        "eval passrate", "recipe.toml", "--held-out", "--samples", "2", "--out", "rates.jsonl"
    )
    assert measured.code == 0, measured.err
    assert "held_out.difficulty=rates.jsonl" in " ".join(measured.out.split())
    lines = (tmp_path / "rates.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines[1:]]
    assert len(rows) == 4
    for row, right in zip(rows, (0, 2, 2, 1), strict=True):
        row["right"] = right
        row["missing"] = 0
    (tmp_path / "rates.jsonl").write_text("\n".join([lines[0], *map(json.dumps, rows)]) + "\n")
    command = ["eval", "recipe.toml", "held_out.difficulty=rates.jsonl", "--json", "figures.json"]
    done = debate_command(*command)
    assert done.code == 0, done.err
    figures = json.loads((tmp_path / "figures.json").read_text())
    counts = {row["name"]: row["n"] for row in figures if row["name"].startswith("direct/accuracy [pass")}
    of_one = figures[0]["n"] // 4
    assert counts == {
        "direct/accuracy [pass rate 0]": of_one,
        "direct/accuracy [pass rate 1]": 2 * of_one,
        "direct/accuracy [pass rate to .5]": of_one,
    }
