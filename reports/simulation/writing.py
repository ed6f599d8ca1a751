"""A run folder of simulated debates, with what was put in beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import tomli_w

from debate import DebateConfig
from debate.seeds import derive_seed
from envs import load_environment
from learner.grading import grade_debate
from learner.runs.folder import write_whole
from reports.simulation.judges import Judges
from reports.simulation.replaying import needed, replay_solutions
from reports.simulation.solutions import Solved
from rewards import RewardConfig, score_debate
from transcripts import Record, RewardNumbers, write_step

FACTS = "simulation.json"
PER_STEP = 32
"""Debates in a step."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a simulation was asked for: ``solutions`` names where they are from."""

    solutions: str
    judges: Judges
    agents: int = 3
    rounds: int = 2
    debates: int = 600
    seed: int = 0


def simulate_run(folder: Path, solved: Sequence[Solved], setting: Setting) -> None:
    """Write a run of simulated debates; ValueError where the folder holds anything else.

    A folder that holds the very same simulation is left as it is.
    """
    if _holds(folder, setting):
        return
    config = DebateConfig(num_agents=setting.agents, num_rounds=setting.rounds)
    todo = needed(solved, setting.debates)
    (folder / "transcripts").mkdir(parents=True, exist_ok=True)
    write_whole(folder / "config.toml", _recipe(folder, setting).encode())
    for step, start in enumerate(range(0, len(todo), PER_STEP)):
        part = todo[start : start + PER_STEP]
        records = _records(part, setting, config, step)
        write_step(folder / "transcripts", step, records, tokens=False)
    write_whole(folder / FACTS, json.dumps(_facts(setting), indent=1).encode() + b"\n")


def _records(part: Sequence[Solved], setting: Setting, config: DebateConfig, step: int) -> list[Record]:
    """Return the scored debates of a step."""
    environment = load_environment("gsm8k")  # any data set compares answers alike
    rewards = RewardConfig()
    found: list[Record] = []
    seed = derive_seed(setting.seed, "step", step)
    for debate in replay_solutions(part, setting.judges, config, environment, seed=seed):
        correct = grade_debate(environment, debate)
        numbers = RewardNumbers.of(score_debate(debate, correct, rewards))
        found.append(Record(debate, step, debate.problem.id, correct, numbers))
    return found


def read_setting(folder: Path) -> Setting | None:
    """Return what a run was simulated with; None for a run that was not, or whose file cannot be read."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        if facts["schema"] == 1:
            setting = facts["setting"]
            return Setting(**(setting | {"judges": Judges(**setting["judges"])}))
    return None


def _facts(setting: Setting) -> dict[str, object]:
    return {"schema": 1, "setting": asdict(setting), "expected": setting.judges.expected}


def _holds(folder: Path, setting: Setting) -> bool:
    """Return whether the folder has this simulation, whole; ValueError where it has something else."""
    if not folder.exists() or not any(folder.iterdir()):
        return False
    held = read_setting(folder)
    if held is None:
        raise ValueError(f"{folder}: is not empty and holds no whole simulation; choose another --out")
    if held != setting:
        raise ValueError(f"{folder}: holds another simulation ({held.solutions}); choose another --out")
    return True


def _recipe(folder: Path, setting: Setting) -> str:
    tables = {
        "run": {"dir": str(folder)},
        "debate": {"num_agents": setting.agents, "num_rounds": setting.rounds},
    }
    return "# simulated: simulation.json has what was put in\n" + tomli_w.dumps(tables)
