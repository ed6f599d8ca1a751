"""docs/metrics.md and what runs log are the same names."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import types
from itertools import product
from pathlib import Path

import pytest
import torch
from msgspec.structs import replace

import debate_rl
from debate import Problem
from debate.policies.scripted import ScriptedPolicy
from debate_rl.config import Config
from debate_rl.inference.engine_report import EngineReport
from debate_rl.inference.local import LocalPolicy
from debate_rl.inference.vllm import EngineState
from debate_rl.metrics.progress import HEADLINES
from debate_rl.metrics.step_log import read_metrics
from debate_rl.sft.session import REPLIES, open_replies
from debate_rl.training.loop import train, train_steps
from envs import Grade, GradeStatus
from learner.losses import LOSSES, LossConfig, LossInputs

PAGE = Path(debate_rl.__file__).parents[1] / "docs/metrics.md"
HANDLES = ("K7", "Q2", "M4")
PIECES = [
    *(f"<solution>\\boxed{{{answer}}}</solution>" for answer in (1, 2)),
    *(f"<comparison>{a} > {b}</comparison>" for a in HANDLES for b in HANDLES if a != b),
    *(f" {n}" for n in range(1, 7)),
    "<evaluation>?</evaluation>",
]
AGREEING = [f"<solution>{word} \\boxed{{1}}</solution>" for word in "abcdefghijkl"]
TARGETS = [f"<evaluation><target>{handle}</target>no</evaluation>" for handle in (*HANDLES, "Z9")]
PROGRAMS = [f"```python\n{code}\n```\n" for code in ("print(1)", "1 / 0")]
TINY = {"hidden_size": 32, "layers": 1, "heads": 2, "kv_heads": 1, "intermediate_size": 48, "init_std": 0.3}
BASE = {
    "seed": 5,
    "env": {"kind": "parity_env:Parity"},
    "held_out": {"limit": 8, "every": 1},
    "debate": {"num_rounds": 2, "max_tokens": 24, "prompts": "tiny", "handles": HANDLES},
    "model": {
        "device": "cpu",
        "chat": True,
        "tiny": {**TINY, "context_tokens": 512, "fallback": "none", "pieces": PIECES},
    },
    "train": {"steps": 3, "batch_size": 4, "group_size": 4},
    "logging": {"progress": "none"},
}
RUNS = {
    "full": {
        "learner": {
            **{"loss": "ppo", "beta": 0.01, "reference_every": 2, "tis_cap": 2.0},
            **{"minibatches": 2, "share_prefixes": True},
        }
    },
    "measured": {
        "rewards": {"peer_weight": "measured"},
        "train": BASE["train"] | {"steps": 6, "batch_size": 4},
        "held_out": {"every": 0},
    },
    "judged": {
        "held_out": {"limit": 8, "every": 1, "judge_pairs": 4},
        "train": BASE["train"] | {"steps": 1},
    },
    "early": {
        "debate": BASE["debate"]
        | {"min_rounds": 1, "judge_own": True, "compress": {"over": 1, "max_tokens": 1}}
        | {"by_level": [{"level": "odd", "num_agents": 2}]},
        "rewards": {"judge_own": True},
        "model": BASE["model"] | {"tiny": BASE["model"]["tiny"] | {"pieces": [*PIECES, *AGREEING]}},
        "train": BASE["train"] | {"steps": 1},
    },
    "half": {
        "model": BASE["model"] | {"lora_rank": 2, "dtype": "float16"},
        "train": BASE["train"] | {"dynamic_sampling": 1, "batch_size": 3, "steps": 1},
    },
    "adaptive": {
        "debate": BASE["debate"] | {"seats": ["learning", "frozen", "learning"]},
        "train": BASE["train"] | {"steps": 1, "adaptive": {"chunk": 2}},
        "held_out": {"limit": 4, "every": 1},
    },
    "schedules": {
        "grader": {"mode": "lenient", "strict_mode": "boxed", "strict_from": 1, "beside": ["boxed"]},
        "rewards": {
            "form_bonus": [[0, 0.1], [2, 0.0]],
            "judge_truth_weight": [[0, 1.0], [2, 0.5]],
            "novelty_bonus": 0.3,
        },
        "debate": BASE["debate"] | {"temperature": [[0, 1.2], [2, 1.0]]},
        "shots": {"count": 1, "path": str(PAGE.parents[1] / "configs/shots/arithmetic.jsonl")},
        "model": BASE["model"]
        | {"tiny": {**TINY, "context_tokens": 2048, "fallback": "none", "pieces": PIECES}},
        "held_out": {"limit": 2, "every": 1},
        "train": BASE["train"] | {"steps": 1},
    },
    "likelihood": {
        "rewards": {"likelihood_weight": [[0, 1.0], [2, 0.5]]},
        "learner": {"keep_reference": True},
        "train": BASE["train"] | {"steps": 1},
        "held_out": {"every": 0},
    },
    "critique": {
        "debate": BASE["debate"]
        | {"protocol": "critique", "num_agents": 4, "num_rounds": 3, "handles": (*HANDLES, "T9")},
        "rewards": {"self_correction": 0.25},
        "model": BASE["model"]
        | {"tiny": {**TINY, "context_tokens": 1024, "fallback": "none", "pieces": [*PIECES, *TARGETS]}},
        "train": BASE["train"] | {"steps": 2},
        "held_out": {"every": 0},
    },
    "tools": {
        "debate": BASE["debate"] | {"tools": "python", "max_tokens": 40},
        "model": BASE["model"]
        | {"tiny": {**TINY, "context_tokens": 1024, "fallback": "none", "pieces": [*PIECES, *PROGRAMS]}},
        "train": BASE["train"] | {"steps": 1},
    },
    "tasks": {
        "env": {"kind": "parity_env:Tasks"},
        "train": BASE["train"] | {"steps": 1},
        "held_out": {"every": 0},
    },
    "mixture": {
        "env": {
            "mix": [{"name": name.lower(), "kind": f"parity_env:{name}"} for name in ("Parity", "Others")]
        },
        "sampling": {"towards_half": True},
        "debate": BASE["debate"] | {"ask_swapped": True},
        "rewards": {"labels": 0.5, "pseudo": "majority"},
        "train": BASE["train"] | {"steps": 1},
        "held_out": {"limit": 0},
    },
    "verifier": {
        "env": {"kind": "parity_env:Opinions"},
        "debate": BASE["debate"] | {"judge_own": True},
        "rewards": {"judge_own": True},
        "endpoints": {"judge": {"policy": "parity_env:Reader"}},
        "verifier": {"endpoint": "judge", "beside_truth": True, "max_tokens": 4000},
        "train": BASE["train"] | {"steps": 1, "batch_size": 8},
        "held_out": {"limit": 12, "every": 1},
    },
    "engine": {
        "model": BASE["model"] | {"policy": "parity_env:Engine"},
        "held_out": {"every": 0},
        "train": BASE["train"] | {"steps": 1},
    },
}
"""Settings that make every metric appear."""


class Reader(ScriptedPolicy):
    """A verifier model that holds a 1 for right, more or less."""

    def __init__(self):
        super().__init__(self.opinion, tokens=True)

    def opinion(self, request):
        content = request.messages[-1].content
        reply = content.partition("<reply>\n")[2].partition("\n</reply>")[0]
        score = 0.9 if ("1" in reply) != ("3" in content) else 0.2
        code = re.search(r"Verdict (\w+): SCORE", content)[1]
        return f"Verdict {code}: {score}"


class Engine(LocalPolicy):
    """Looked after as an engine with weights of its own."""

    async def check(self, requests):
        replies = tuple([await self.sample(request) for request in requests])
        return (EngineReport("float32", replies, 0, False),)


def states_of(policy):
    return [EngineState(busy=False, steps=1, seconds=1.0)] if isinstance(policy, Engine) else []


class Parity:
    """Say 1 to an odd number and 2 to an even one; whole replies are single tokens, so chance solves some."""

    name = "parity"

    def problems(self, *, split, limit=None, seed=None):
        numbers = range(1, 5) if split == "train" else range(5, 13)
        return tuple(self.problem(n) for n in numbers)

    def problem(self, n):
        level = "odd" if n % 2 else "even"
        return Problem(f"p{n}", f" {n}", answer=str(2 - n % 2), kind="number", level=level)

    def grade(self, problem, answer):
        if answer is None:
            return Grade(GradeStatus.MISSING, "parity")
        return Grade(GradeStatus.CORRECT if answer == problem.answer else GradeStatus.WRONG, "parity", answer)


class Tasks(Parity):
    """The same numbers from two sources, of which one has partly right answers."""

    name = "tasks"

    def problems(self, *, split, limit=None, seed=None):
        problems = super().problems(split=split, limit=limit, seed=seed)
        return tuple(replace(p, source=f"tasks/{int(p.id[1:]) % 2}") for p in problems)

    def grade(self, problem, answer):
        grade = super().grade(problem, answer)
        return dataclasses.replace(grade, share=0.5) if answer and problem.source == "tasks/1" else grade


class Others(Parity):
    """The same numbers under other ids."""

    def problems(self, *, split, limit=None, seed=None):
        problems = super().problems(split=split, limit=limit, seed=seed)
        return tuple(replace(p, id=f"other {p.id}") for p in problems)


class Opinions(Parity):
    """The same, and tasks of which only a verifier model says anything."""

    def problems(self, *, split, limit=None, seed=None):
        own = super().problems(split=split)
        tasks = (Problem(f"{split}{n}", f"{split} {n}", kind="rubric", rubric="Short.") for n in range(1, 5))
        return (*own, *tasks)


OWN = {
    "Parity": Parity,
    "Others": Others,
    "Engine": Engine,
    "Opinions": Opinions,
    "Reader": Reader,
    "Tasks": Tasks,
}


@pytest.fixture(scope="module")
def logged(tmp_path_factory, make_programs) -> set[str]:
    """Every name that the runs wrote to metrics.jsonl."""
    folder, names = tmp_path_factory.mktemp("runs"), set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("debate_rl.training.loop.states_of", states_of)
        patch.setattr("debate_rl.engines.open_sandbox", lambda config: make_programs())
        patch.setitem(sys.modules, "parity_env", types.SimpleNamespace(**OWN))
        for name, changes in RUNS.items():
            config = Config.model_validate(BASE | {"run": {"dir": str(folder / name)}} | changes)
            for row in read_metrics(train(config).folder.metrics):
                names |= row.keys()
        for row in read_metrics(learnt_replies(folder).metrics):
            names |= row.keys()
    return names


def learnt_replies(folder):
    """Return the folder of a supervised run."""
    path, replies = folder / "replies.jsonl", [{"question": f" {n}?", "reply": PIECES[0]} for n in range(8)]
    path.write_text("".join(json.dumps(row) + "\n" for row in replies))
    changes = {
        "sft": {"data": [str(path)], "batch_size": 4, "held_back": 2},
        "run": {"dir": str(folder / "sft")},
    }
    config = Config.model_validate(BASE | changes | {"held_out": {"limit": 0, "every": 1}})
    with open_replies(config) as session:
        train_steps(session, REPLIES)
    return session.folder


def rows_of_page() -> list[list[str]]:
    """Return the cells of every row of the page's tables."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def expanded(name: str) -> list[str]:
    """Return the names that one with braces stands for.

    ``a/{b,c}`` is a/b and a/c.
    """
    parts = [part.strip("{}").split(",") for part in re.split(r"(\{.*?\})", name)]
    return ["".join(choice) for choice in product(*parts)]


def documented() -> list[str]:
    names = [name for row in rows_of_page() for name in re.findall(r"`([^`]+)`", row[0])]
    return [one for name in names for one in expanded(name)]


def matches(pattern: str, name: str) -> bool:
    form = re.sub(
        "<mode>|<source>|<set>|<gate>|<seat>", r"\\w+", re.sub(r"<[rk]>", r"\\d+", re.escape(pattern))
    )
    return re.fullmatch(form, name) is not None


@pytest.mark.slow
def test_every_metric_of_a_run_is_on_the_page(logged):
    page = documented()
    assert [name for name in sorted(logged) if not any(matches(one, name) for one in page)] == []


@pytest.mark.slow
def test_every_metric_on_the_page_is_logged(logged):
    assert [one for one in documented() if not any(matches(one, name) for name in logged)] == []


def test_every_row_has_a_formula_and_a_healthy_range_and_no_name_comes_twice():
    assert len(rows_of_page()) > 80
    for row in rows_of_page():
        assert len(row) == 3, row
        assert all(row), row
    names = documented()
    assert sorted(set(names)) == sorted(names)


@pytest.mark.slow
def test_a_name_that_is_missing_on_either_side_is_found(logged):
    assert not any(matches(one, "reward/peer/median") for one in documented())
    assert not any(matches("winner/regret", name) for name in logged)
    assert expanded("a/{b,c}/{d,e}") == ["a/b/d", "a/b/e", "a/c/d", "a/c/e"]
    assert matches("pass@<k>", "pass@16")
    assert not matches("pass@<k>", "pass@")


@pytest.mark.parametrize("loss", LOSSES)
def test_the_metrics_of_every_loss_are_on_the_page(loss):
    def values(seed):
        return -torch.rand(2, 5, generator=torch.Generator().manual_seed(seed))

    mask = torch.tensor([[False, True, True, True, True]] * 2)
    stream = mask.to(torch.int8)
    inputs = LossInputs(values(0), values(1), values(2), values(3), values(4), mask, stream)
    outputs = LOSSES[loss](inputs, LossConfig(beta=0.1, max_tokens=5))
    assert outputs.metrics.keys() <= set(documented())


@pytest.mark.slow
def test_the_progress_line_shows_metrics_that_exist(logged):
    assert set(HEADLINES) <= logged
