"""Debates replayed from real solutions with judges of a known accuracy. Skips without the data folder.

Four solutions of each GSM8K problem, right and wrong, are what four agents say; judges that err at a set rate
compare them. Everything behind the replies is the real thing: prompts, parser, grader, rewards, rows.
"""

import json
import os
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest

from debate import DebateConfig, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.escape import escape
from debate.prompting.reading import read_prompt
from debate.prompting.texts import load_prompts
from debate_rl.evaluation.grading import grade_debate
from debate_rl.metrics.debates import debate_metrics
from envs import load_environment
from learner.advantages import AdvantageConfig, turn_advantages
from learner.rows import make_rows
from learner.token_streams import GENERATOR, JUDGE
from learner.types import transitions_of
from rewards import RewardConfig, score_debate

DATA = os.environ.get("DEBATE_TEST_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="set DEBATE_TEST_DATA to the folder of the data files")

PROBLEMS, AGENTS, ACCURACY = 60, 4, 0.8
CONFIG = DebateConfig(num_agents=AGENTS, num_rounds=2, max_tokens=20_000)
TEXTS = load_prompts(CONFIG.prompts)


@pytest.fixture(scope="module")
def solutions():
    """Return {problem id: its four rows}, for problems of which some solution is right and some is wrong."""
    found = {}
    with (Path(str(DATA)) / "model_outputs_gsm8k.jsonl").open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            found.setdefault(row["question"], []).append(row)
    mixed = [rows for rows in found.values() if len({row["expected"] for row in rows}) == 2]
    return {f"p{number}": rows for number, rows in enumerate(mixed[:PROBLEMS])}


def written(row):
    """Return a real solution with its last line's answer in a box."""
    return f"{row['output'].strip()}\n\\boxed{{{row['output'].rpartition('A:')[2].strip()}}}"


def script(solutions):
    def reply(request):
        rows = solutions[request.debate.partition(":")[2]]
        seen = read_prompt(TEXTS, request.messages)
        solution = f"<solution>{written(rows[request.turn.agent])}</solution>"
        if not seen.entries:
            return solution
        judged = (
            f"<evaluation>Compared step by step.</evaluation>\n<comparison>\n{votes(rows, seen, request)}"
        )
        judged += "\n</comparison>"
        return judged if request.turn.round == CONFIG.num_rounds else f"{solution}\n{judged}"

    return reply


def votes(rows, seen, request):
    """Return a line for each pair of others'; the right one of a decidable pair wins at ACCURACY."""
    rng = Random(request.seed)
    right = {entry.handle: is_right(rows, entry) for entry in seen.entries if entry.handle != seen.handle}
    lines = []
    for a, b in combinations(right, 2):
        better, worse = (a, b) if right[a] >= right[b] else (b, a)
        kept = rng.random() < (ACCURACY if right[a] != right[b] else 0.5)
        lines.append(f"{better} > {worse}" if kept else f"{worse} > {better}")
    return "\n".join(lines)


def is_right(rows, entry):
    return next(row["expected"] for row in rows if escape(written(row)) in entry.solution)


@pytest.fixture(scope="module")
def replayed(solutions, tmp_path_factory):
    """Return (debates, correct, rewards) of one debate for each problem."""
    path = tmp_path_factory.mktemp("replay") / "problems.jsonl"
    lines = [
        json.dumps({"id": name, "question": rows[0]["question"], "answer": rows[0]["gold"]})
        for name, rows in solutions.items()
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    environment = load_environment("jsonl", path=str(path))
    problems = environment.problems(split="train")
    debates = run_debates(problems, ScriptedPolicy(script(solutions), tokens=True), CONFIG, seed=1)
    correct = [grade_debate(environment, debate)[1] for debate in debates]
    rewards = [score_debate(d, c, RewardConfig()) for d, c in zip(debates, correct, strict=True)]
    return debates, correct, rewards


def test_every_reply_is_read_and_graded_as_labelled(replayed, solutions):
    debates, correct, _ = replayed
    for debate, table in zip(debates, correct, strict=True):
        assert [turn.parsed.failures for turn in debate.turns] == [()] * 3 * AGENTS
        labels = [row["expected"] for row in solutions[debate.problem.id]]
        assert [list(row) for row in table] == [[label] * 2 for label in labels]
        assert len(debate.votes) == 2 * AGENTS * 3


def test_the_judges_accuracy_is_recovered(replayed):
    metrics = debate_metrics(*replayed, evaluation="judge")
    assert metrics["judge/decidable_votes"] == metrics["judge/decidable_pairs"] > 600
    assert metrics["judge/accuracy"] == pytest.approx(ACCURACY, abs=0.04)
    assert metrics["judge/coverage"] == metrics["judge/parsed_share"] == 1.0
    assert metrics["reward/judge/mean"] == pytest.approx(2 * ACCURACY - 1, abs=0.08)
    assert metrics["winner/lift"] > 0.2  # twelve votes of 0.8 each find the better solution
    assert metrics["format/valid"] == 1.0


def test_all_streams_are_there(replayed, solutions):
    for debate, _, rewards in zip(*replayed, strict=True):
        labels = [row["expected"] for row in solutions[debate.problem.id]]
        assert rewards.truth == tuple((float(label), float(label)) for label in labels)
        assert all(score is not None for row in rewards.peer for score in row)
        assert sum(row[0] for row in rewards.peer) == pytest.approx(0)  # every win is somebody's loss
        assert [row[0] for row in rewards.judge] == [None] * AGENTS
        # mixed debates: with 2 and 2 every judge sees a decidable pair, with 1 and 3 the odd one out does not
        odd = {1: True, 3: False}.get(sum(labels))
        for agent, label in enumerate(labels):
            assert (rewards.judge[agent][1] is None) == (odd is not None and label == odd)
        assert rewards.format == ((0.0, 0.0, 0.0),) * AGENTS


def test_rows_hold_the_reply_and_its_streams(replayed):
    debates, _, rewards = replayed
    transitions = transitions_of(debates, rewards, range(len(debates)))
    advantages = turn_advantages(transitions, RewardConfig(), AdvantageConfig(), {})
    rows = make_rows(transitions, advantages.turns, AdvantageConfig())
    assert len(rows) + advantages.metrics["advantage/rows_dropped"] == len(debates) * AGENTS * 3
    turns = {(d.problem.id, turn.id): turn for d in debates for turn in d.turns}
    parts = {
        (transition.problem_id, transition.turn.id): part
        for transition, part in zip(transitions, advantages.turns, strict=True)
    }
    for row in rows:
        turn, part = turns[row.group_id, row.turn], parts[row.group_id, row.turn]
        said = "".join(chr(token) for token in row.input_ids[row.action_mask])
        assert said == turn.completion.text
        assert (row.stream[~row.action_mask] == 0).all()
        assert (row.advantages[~row.action_mask] == 0).all()
        judged = "".join(chr(t) for t in row.input_ids[row.stream == JUDGE])
        start = {0: len(said), 1: said.find("<evaluation>"), 2: 0}[row.turn.round]
        assert judged == said[start:]
        assert set(row.advantages[row.stream == GENERATOR]) <= {np.float32(part.generator or 0.0)}
        assert set(row.advantages[row.stream == JUDGE]) <= {np.float32(part.judge or 0.0)}
