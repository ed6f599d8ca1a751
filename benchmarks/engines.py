"""Another engine beside our learner, on the same stored rows: log-probabilities, loss, gradient, seconds.

A tiny model with a short warm start holds debates. Their rows get advantages from votes and random grades.
Both sides then read the rows and make one update from the same weights, for each loss. Tinker trains an
adapter that begins with the server's random numbers, so only its first loss is compared. The engines run on a
CPU as in tests/slow: SkyRL's server, or two workers and two servers of verl. TRL's trainer is compared for
the losses that it can follow. verifiers has no learner of its own: there the figure is the number of traces
whose advantages differ from our rows.

    make engines && .venv/bin/python benchmarks/engines.py --engine verl --json verl.json
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from copy import deepcopy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeAlias

from report import Figure, parser, report
from torch import Tensor

from debate import run_debates
from debate_rl.backends import tinker_api, verl_api
from debate_rl.backends.learner import ServiceLearner
from debate_rl.config import Config
from debate_rl.config.models import ModelConfig
from debate_rl.engines import make_policy
from debate_rl.models import load_model
from debate_rl.sampling.load_problems import load_run_problems
from learner import AdvantageConfig, LearnerConfig, Row, make_rows, transitions_of, turn_advantages
from learner.update.learner import Learner
from rewards import RewardConfig, score_debate

HOME = Path(__file__).parents[1]
Service: TypeAlias = tinker_api.TinkerService | verl_api.VerlService
LOSSES = {
    "grpo": {"loss": "grpo"},
    "dapo": {"loss": "dapo", "beta": 0.05},
    "cispo": {"loss": "cispo", "normalise": "stream", "minibatches": 2},
}
HOMES = {"trl": ".venv", "verl": ".venv-verl", "tinker": ".venv-skyrl", "verifiers": ".venv-verifiers"}
DEBATES = 12


def main() -> None:
    """Print the table."""
    known = parser(str(__doc__).partition("\n")[0])
    known.add_argument("--engine", choices=list(HOMES), required=True)
    args = known.parse_args()
    there = find_spec("trl") if args.engine == "trl" else (HOME / HOMES[args.engine] / "installed").exists()
    if not there:
        sys.exit("this engine is not installed: make engines")
    if args.engine == "trl":
        with TemporaryDirectory() as name:
            start = start_model(Path(name))
            rows = stored_rows(start)
            figures = list(trained_by_trl(start, rows))
        report(f"trl beside our learner, {len(rows)} rows", figures, args.json)
        return
    if args.engine == "verifiers":
        report("advantages on traces of verifiers beside our rows", [compared_traces()], args.json)
        return
    sys.path.insert(0, str(HOME))
    with TemporaryDirectory() as name:
        start = start_model(Path(name))
        rows = stored_rows(start)
        with {"verl": verl_service, "tinker": tinker_service}[args.engine](start, Path(name)) as service:
            figures = list(compared(args.engine, start, rows, service))
    report(f"{args.engine} beside our learner, {len(rows)} rows", figures, args.json)


def compared_traces() -> Figure:
    """Return the number of traces whose advantages differ, counted in verifiers' environment."""
    program = HOME / "tests/slow/verifiers_advantages.py"
    command = [HOME / HOMES["verifiers"] / "bin/python", program]
    ran = subprocess.run(
        command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(HOME)}
    )
    found = json.loads(ran.stdout)
    return Figure("verifiers_advantages_differ", found["differ"], "traces", found["traces"])


def start_model(folder: Path) -> Path:
    """Return the export of a short warm start."""
    brief = ("warm_start.solve_steps=60", "warm_start.debate_steps=120", "held_out.every=0", "train.steps=0")
    for words in (
        ("train", "quickstart", *brief, f"run.dir={folder}/warm", "logging.progress=none"),
        ("export", f"{folder}/warm", "--out", f"{folder}/start"),
    ):
        subprocess.run([sys.executable, "-m", "debate_rl", *words], check=True, stdout=subprocess.DEVNULL)
    return folder / "start"


def config_of(start: Path, engine: dict[str, object], lora_rank: int = 0) -> Config:
    """Return the recipe of the slow tests with this model and engine."""
    recipe = import_module("tests.slow.test_verl").RECIPE
    model = {"name_or_path": str(start), "chat": True, "lora_rank": lora_rank}
    return Config.model_validate(recipe | {"model": model, "engine": engine})


def stored_rows(start: Path) -> list[Row]:
    """Return the rows of debates of the start model, with advantages from votes and random grades."""
    config = config_of(start, {"kind": "local"})
    problems = load_run_problems(config).train[: DEBATES // 3]
    _, _, policy = make_policy(config)
    debates = run_debates([one for one in problems for _ in range(3)], policy, config.debate, seed=0)
    rng, scheme = Random(0), RewardConfig()
    agents = config.debate.num_agents
    grades = [[[rng.random() < 0.5] for _ in range(agents)] for _ in debates]
    rewards = [score_debate(one, grade, scheme) for one, grade in zip(debates, grades, strict=True)]
    transitions = transitions_of(debates, rewards, [index // 3 for index in range(len(debates))])
    settings = AdvantageConfig()
    return make_rows(transitions, turn_advantages(transitions, scheme, settings, {}).turns, settings)


@contextmanager
def verl_service(start: Path, folder: Path) -> Generator[Service]:
    """Start two workers and two servers of verl on this CPU."""
    slow = import_module("tests.slow.test_verl")
    os.environ |= slow.ON_A_CPU
    service = verl_api.open_service(config_of(start, slow.RECIPE["engine"]))[0]
    try:
        yield service
    finally:
        service.close()


@contextmanager
def tinker_service(start: Path, folder: Path) -> Generator[Service]:
    """Start SkyRL's server on this CPU."""
    server = import_module("tests.slow.test_tinker_server").Server(folder, start)
    server.start()
    try:
        config = config_of(start, {"kind": "tinker", "base_url": server.url}, lora_rank=8)
        yield tinker_api.open_service(config)[0]
    finally:
        server.kill()


def trained_by_trl(start: Path, rows: list[Row]) -> Generator[Figure]:
    """Yield the differences between one step of TRL's trainer and of our learner."""
    from debate_rl.trl_trainer import DebateTrainer, trl_arguments

    where = {"use_cpu": True, "bf16": False, "save_strategy": "no", "disable_tqdm": True, "logging_steps": 1}
    where |= {"lr_scheduler_type": "constant", "adam_epsilon": 1e-5, "gradient_checkpointing": False}
    for name in ("grpo", "dapo"):
        base = {"loss": name, "lr": 1e-3, "warmup_steps": 0, "adam_eps": 1e-5, "compute": "float32"}
        config = config_of(start, {"kind": "local"}).model_copy(
            update={"learner": LearnerConfig.model_validate(base)}
        )
        config = config.model_copy(
            update={"train": config.train.model_copy(update={"steps": 1, "group_size": DEBATES})}
        )
        model, tokenizer = load_model(ModelConfig(name_or_path=str(start), device="cpu"), seed=0)
        learner = Learner(deepcopy(model), config.learner)
        expected, own = _timed(learner, rows)
        arguments = trl_arguments(config, str(start.parent / name), **where)
        trainer = DebateTrainer(config, model, tokenizer, arguments)
        trainer.rows_of = lambda step: rows
        began = time.monotonic()
        trainer.train()
        seconds, [logged] = (
            time.monotonic() - began,
            [one for one in trainer.state.log_history if "loss" in one],
        )
        yield Figure(f"trl_loss_difference/{name}", abs(logged["loss"] - expected["loss"]), "", 1)
        norm = abs(logged["grad_norm"] / expected["grad_norm"] - 1)
        yield Figure(f"trl_grad_norm_difference/{name}", norm, "relative", 1)
        after = _apart(learner.logprobs(rows), Learner(model, config.learner).logprobs(rows))
        yield Figure(f"trl_logprob_difference_after/{name}", after, "nats", len(rows))
        yield Figure(f"local_step_s/{name}", own, "s", 1)
        yield Figure(f"trl_step_s/{name}", seconds, "s", 1)


def compared(engine: str, start: Path, rows: list[Row], service: Service) -> Generator[Figure]:
    """Yield the differences between an engine and our learner."""
    base = {"lr": 1e-3, "warmup_steps": 0, "adam_eps": 1e-5, "compute": "float32", "max_tokens": 48}
    kept = start.with_name("kept")
    service.save_pretrained(kept)
    for number, (name, changes) in enumerate(LOSSES.items()):
        config = LearnerConfig.model_validate(base | changes)
        model = load_model(ModelConfig(name_or_path=str(start), device="cpu"), seed=0)[0]
        service.load_pretrained(kept)
        ours, theirs = Learner(model, config), ServiceLearner(service, config)
        if number == 0:
            both = ours.logprobs(rows), theirs.logprobs(rows)
            yield Figure(f"{engine}_logprob_difference", _apart(*both), "nats", int(both[0].numel()))
        elif engine == "tinker":
            return
        (expected, own), (found, other) = _timed(ours, rows), _timed(theirs, rows)
        yield Figure(f"{engine}_loss_difference/{name}", abs(found["loss"] - expected["loss"]), "", 1)
        if engine != "tinker":
            norm = abs(found["grad_norm"] / expected["grad_norm"] - 1)
            yield Figure(f"{engine}_grad_norm_difference/{name}", norm, "relative", 1)
            after = _apart(ours.logprobs(rows), theirs.logprobs(rows))
            yield Figure(f"{engine}_logprob_difference_after/{name}", after, "nats", len(rows))
        yield Figure(f"local_step_s/{name}", own, "s", 1)
        yield Figure(f"{engine}_step_s/{name}", other, "s", 1)


def _timed(learner: Learner | ServiceLearner, rows: list[Row]) -> tuple[dict[str, float], float]:
    began = time.monotonic()
    return learner.step(rows), time.monotonic() - began


def _apart(ours: Tensor, theirs: Tensor) -> float:
    return float((ours.cpu() - theirs).abs().max())


if __name__ == "__main__":
    main()
