"""Tasksets of the package verifiers (0.4) as environments: tasks are problems, and their rewards are grades.

A taskset is installed code. Its rewards run in this process, on what the model wrote.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from math import isfinite
from random import Random
from typing import Any

from debate.concurrency import run_async
from debate.types import Problem
from envs.errors import DataError, EnvironmentSpecError, MissingPackageError
from envs.families.synthetic import SPLITS, split_of
from envs.types import Grade, GradeStatus

MOST_MISSES = 10_000
"""An endless taskset is exhausted after this many tasks without a new one of the split."""
UNWRITTEN = "(any response that the task's rewards accept)"


class VerifiersTasks:
    """A taskset by its installed name, such as "verifiers:my-taskset".

    The rewards see the whole response, so problems are of kind "overlap". A response is right if its rewards
    add up to 1 or more. A taskset whose configuration has a ``split`` reads that split; the tasks of others
    are divided by their prompts: 70% train, 10% validation, 20% test.
    """

    def __init__(self, kind: str) -> None:
        self.name = kind
        self._tasks: dict[str, Any] = {}

    def problems(
        self, *, split: str, limit: int | None = None, seed: int | None = None
    ) -> tuple[Problem, ...]:
        """Return ``limit`` problems of a split, in the order of the seed, or of the taskset without one."""
        taskset, reads_splits = self._load(split)
        found = self._read(taskset, split, reads_splits)
        if taskset.INFINITE:
            if not limit:
                raise DataError(f"env.limit: {self.name} has any number of problems; set it to 1 or more")
            return tuple(islice(found, limit))
        found = list(found)
        if seed is not None:
            Random(seed).shuffle(found)
        return tuple(found[:limit])

    def grade(self, problem: Problem, answer: str | None) -> Grade:
        """Return the grade by the task's rewards; ``share`` is their sum, within [0, 1].

        Rewards that fail, or a task that was not read here, give no verdict.
        """
        if answer is None:
            return Grade(GradeStatus.MISSING, "none")
        started = time.perf_counter()
        task = self._tasks.get(problem.id)
        if task is None:
            return Grade(GradeStatus.CRASH, f"{self.name}: not loaded", answer)
        try:
            rewards = run_async(_rewards(task, problem, answer))
        except Exception as error:  # the taskset's own code
            return Grade(GradeStatus.CRASH, f"{self.name}: {type(error).__name__}", answer)
        total = sum(rewards.values())
        seconds = time.perf_counter() - started
        if not isfinite(total):
            return Grade(GradeStatus.CRASH, f"{self.name}: not finite", answer, seconds)
        status = GradeStatus.CORRECT if total >= 1 else GradeStatus.WRONG
        return Grade(status, self.name, answer, seconds, share=min(max(total, 0.0), 1.0))

    def _read(self, taskset: Any, split: str, reads_splits: bool) -> Iterator[Problem]:
        """Yield the problems of a split in the order of the taskset, and keep their tasks."""
        if not reads_splits and split not in SPLITS:
            raise DataError(f"split: {self.name} has {', '.join(SPLITS)}; got {split!r}")
        seen: set[str] = set()
        misses = 0
        for task in taskset:
            data = task.data
            question = "\n\n".join(part for part in (data.system_prompt, data.prompt_text) if part)
            if taskset.INFINITE and misses > MOST_MISSES:
                return
            misses += 1
            if question in seen or (not reads_splits and split_of(question) != split):
                continue
            misses = 0
            seen.add(question)
            id = f"{self.name}/{split if reads_splits else ''}/{data.idx}"
            self._refuse_unfit(task, id, question)
            self._tasks[id] = task
            answer = getattr(data, "answer", None)
            written = answer if isinstance(answer, str) and answer else UNWRITTEN
            yield Problem(id, question, written, self.name, kind="overlap")

    def _refuse_unfit(self, task: Any, id: str, question: str) -> None:
        """Raise DataError for a task that needs more than one response to a text."""
        needs = {
            "a container": task.NEEDS_CONTAINER or task.data.image is not None,
            "tools": bool(type(task).toolsets(task.config)),
            "a conversation": not question,
            "a reward function": not (task.hooks("reward") or task.config.judges),
        }
        for what, needed in needs.items():
            if needed:
                raise DataError(
                    f"{id}: needs {what}; only tasks of one prompt and one scored response can be debated"
                )

    def _load(self, split: str) -> tuple[Any, bool]:
        """Return the taskset, and whether it reads splits itself."""
        try:
            from verifiers.v1.utils.loaders import load_taskset, taskset_config_type
        except ImportError as error:
            raise MissingPackageError(
                f"{self.name}: verifiers is not installed; pip install verifiers"
            ) from error
        name = self.name.partition(":")[2]
        try:
            config = taskset_config_type(name)
            reads_splits = "split" in config.model_fields
            taskset = load_taskset(config(id=name, **({"split": split} if reads_splits else {})))
        except Exception as error:  # the taskset's own code
            raise EnvironmentSpecError(f"{self.name}: cannot be loaded: {error}") from error
        if type(taskset).toolsets(taskset.config):
            raise EnvironmentSpecError(f"{self.name}: has tools, which debates do not run")
        return taskset, reads_splits


async def _rewards(task: Any, problem: Problem, answer: str) -> dict[str, float]:
    """Return the weighted rewards of a response, as verifiers computes them without a runtime."""
    from verifiers.v1 import AgentConfig, AssistantMessage, Trace, UserMessage
    from verifiers.v1.graph import MessageNode
    from verifiers.v1.trace import AgentInfo, TraceTask

    trace = Trace(
        task=TraceTask(type=type(task).__name__, data=task.data),
        agent=AgentInfo(config=AgentConfig()),
        nodes=[
            MessageNode(message=UserMessage(content=problem.question)),
            MessageNode(parent=0, message=AssistantMessage(content=answer), sampled=True),
        ],
    )
    await task.score(trace)
    values = {name: reward.value for name, reward in trace.rewards.items() if reward is not None}
    if not values:
        raise ValueError("no reward can be computed without a runtime")
    return values
