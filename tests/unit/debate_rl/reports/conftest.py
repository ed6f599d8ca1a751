"""Debates written by hand: three agents, two rounds, a final ballot; a small run with everything in it."""

import json

import pytest

from debate import Completion, Debate, DebateConfig, Persona, Problem, Turn, Vote, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from debate.types import ParsedTurn, Span, TurnId
from debate_rl.reports.document import Judged
from debate_rl.reports.figures import figures_of
from debate_rl.reports.rows import Study
from rewards import RewardConfig, score_debate
from transcripts import Record, write_step

WHO = ("Analyst", "Advocate", "Solver", "Fourth")


def make(
    votes, correct, answers, *, problem="p", step=0, own=False, order=None, sizes=None, question="?", **about
):
    """A debate; a vote is (judge, its round, left, right, outcome), about the newest solutions."""
    agents, rounds = len(correct), len(correct[0])

    def turn(agent, round_):
        seats = order(agent) if order else range(agents)
        shown = tuple(TurnId(a, round_ - 1) for a in seats if round_ and (own or a != agent))
        size = sizes[agent] if sizes else 10
        ballot = round_ == rounds
        parsed = ParsedTurn() if ballot else ParsedTurn(Span(0, size), answer=answers[agent][round_])
        said = Completion((), (), (), "x" * size, "stop", 0)
        return Turn(TurnId(agent, round_), "K7", shown, said, parsed, shown, ballot=ballot)

    personas = tuple(Persona(name, "") for name in WHO[:agents])
    turns = tuple(turn(a, r) for r in range(rounds + 1) for a in range(agents))
    cast = tuple(Vote(TurnId(j, r), TurnId(a, r - 1), TurnId(b, r - 1), said) for j, r, a, b, said in votes)
    protocol = DebateConfig(num_agents=agents, num_rounds=rounds, judge_own=own)
    debate = Debate(Problem(problem, question, **about), personas, turns, cast, 3, 0, protocol)
    return Record(debate, step, problem, tuple(map(tuple, correct)))


@pytest.fixture(scope="session")
def make_debate():
    return make


@pytest.fixture
def ordered():
    """1 beats 0 beats 2 in round 0; one wrong vote, one right, a tie and a vote left out."""
    votes = [
        (0, 1, 1, 2, "left"),  # both wrong, the first shown wins
        (1, 1, 0, 2, "left"),  # right
        (2, 1, 1, 0, "left"),  # wrong
        (0, 2, 1, 2, "tie"),  # one side is right
        (2, 2, 0, 1, "right"),  # both right, the second shown wins
    ]
    correct = [[True, True], [False, True], [False, False]]
    answers = [["4", "4"], ["5", "4"], ["6", "5"]]
    return make(votes, correct, answers, problem="p1", level="Level 1", source="MATH/algebra")


@pytest.fixture
def circular():
    """All right and in a circle, then one falls; nobody votes in the final ballot."""
    votes = [(0, 1, 1, 2, "left"), (1, 1, 0, 2, "right"), (2, 1, 0, 1, "left")]
    correct = [[True, False], [True, True], [True, True]]
    answers = [["4", "7"], ["4", "4"], ["4", "4"]]
    return make(votes, correct, answers, problem="p2", step=100, level="Level 2", source="MATH/geometry")


def scored(debate, step):
    """The record of a debate of two rounds, graded by equality of answers and rewarded."""
    right = {turn.id: turn.parsed.answer == debate.problem.answer for turn in debate.turns}
    seats = range(debate.protocol.num_agents)
    correct = tuple(tuple(right[TurnId(agent, round_)] for round_ in range(2)) for agent in seats)
    return Record(debate, step, debate.problem.id, correct, score_debate(debate, correct, RewardConfig()))


def judged(debates, run="run", **about):
    study = Study(debates)
    return Judged(run, study, figures_of(study), **about)


def vote_on(right, problem, **about):
    """A debate of one decidable vote, for the right side or the wrong one."""
    vote = (2, 1, 0, 1, "left" if right else "right")
    return make([vote], [[True], [False], [False]], [["4"], ["5"], ["6"]], problem=problem, **about)


def records_of(step):
    """Eight debates of a step: two of each of four problems, by scripted debaters that get better."""
    config = DebateConfig(num_agents=3, num_rounds=2)
    problems = [Problem(f"sum/{n}", f"What is {n} + 1?", str(n + 1), "sums/small") for n in range(4)]
    skill = 0.2 + 0.05 * step
    answers = {p.id: Answers(str(p.answer), ("5", "6")) for p in problems}
    policy = scripted_debaters(answers, solve=(skill,) * 3, judge=0.8)
    return [scored(debate, step) for debate in run_debates(problems * 2, policy, config, seed=step)]


@pytest.fixture(scope="session")
def traced(tmp_path_factory):
    """A run of 14 steps of which the transcripts alone are left."""
    folder = tmp_path_factory.mktemp("runs") / "traced"
    for step in range(14):
        write_step(folder / "transcripts", step, records_of(step))
    return folder


@pytest.fixture
def whole(tmp_path, traced):
    """The same run with settings and metrics."""
    folder = tmp_path / "whole"
    folder.mkdir()
    (folder / "transcripts").symlink_to(traced / "transcripts")
    (folder / "config.toml").write_text(CONFIG)
    (folder / "run.json").write_text('{"starts": []}')
    lines = [metrics_line(step) for step in range(14)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


CONFIG = """
[debate]
num_agents = 3
[train]
steps = 14
group_size = 2
keep_best = "eval/debate/winner/accuracy"
[learner]
lr = 5e-5
beta = 0.0
[model]
lora_rank = 0
[held_out]
every = 7
"""


def metrics_line(step):
    """A line of a run whose accuracy rises from .2 to .72 by .04 a step."""
    right = 0.2 + 0.04 * step
    line = {"step": step, "time": 1000.0 + 10 * step, "accuracy": right, "accuracy/round_0": right - 0.1}
    line |= {"reward/truth/mean": right, "reward/truth/std": 0.4, "reward/peer/mean": 0.0}
    line |= {"reward/peer/std": 0.7, "loss": 0.01, "grad_norm": 0.2, "updates": 1.0, "kl_mean": 0.01 * step}
    line |= {"votes/cast": 100.0, "votes/valid": 98.0, "votes/ties": 3.0, "judge/parsed_share": 0.99}
    line |= {"judge/accuracy": 0.8, "judge/decidable_votes": 30.0, "winner/lift": 0.1, "format/valid": 0.98}
    line |= {"accuracy/source/gsm8k": right, "accuracy/source/math": 0.1, "share/source/gsm8k": 0.25}
    line |= {"completions/distinct": 0.7, "seconds/rollout": 6.0, "seconds/learn": 2.0}
    if step % 7 == 6:
        values = {"eval/direct/accuracy": right - 0.05, "eval/debate/winner/accuracy": right + 0.1}
        for name, value in values.items():
            line |= {name: value, f"{name}/low": value - 0.04, f"{name}/high": value + 0.04}
    return line
