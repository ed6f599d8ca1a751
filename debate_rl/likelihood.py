"""The frozen reader of a run: a model that scores gold answers after reasoning, without the question.

The score is a log-probability. The reader is the reference model of the KL penalty: the base below an
adapter, or a copy of full weights. It never learns, so the reward can only rise through the content of the
reasoning, not through a code between policy and reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from debate import Debate, Problem, run_debates
from debate.seeds import derive_seed
from debate.types import Message, TurnId
from debate.values import Value
from debate_rl.config import Config
from debate_rl.config.likelihood import LikelihoodConfig
from debate_rl.engines import local_settings
from debate_rl.evaluation.grading import gold_of, reasoning_of, solution_of
from debate_rl.inference.encoding import PromptEncoder
from debate_rl.inference.local import LocalPolicy
from debate_rl.runs.trainer_state import generators_kept
from envs.types import Mode
from learner.types import Row
from learner.update.batches import micro_batches
from learner.update.forward import action_logprobs, reading
from learner.update.learner import Learner
from learner.update.reference import Reference
from rewards.types import Likelihoods, stream_of
from transcripts.append import LineFile
from transcripts.codec import decoded_lines, in_ascii


def open_reader(config: Config, learner: object, tokenizer: Any, path: Path) -> Reader | None:
    """Return the reader of a run, or None if no reward uses likelihoods. ValueError with several ranks."""
    if not config.rewards.reads_likelihood:
        return None
    if not isinstance(learner, Learner):
        raise ValueError(
            "rewards.likelihood_weight: the frozen reader needs the complete reference model, but several "
            "ranks share it; train on one GPU, or set this weight to 0"
        )
    return Reader(config, learner, tokenizer, path)


@dataclass
class Reader:
    """Reads the solutions of a run's steps. ``path``: the run's folder, which keeps the baselines."""

    config: Config
    learner: Learner
    tokenizer: Any
    path: Path
    baselines: Baselines = field(init=False)

    def __post_init__(self) -> None:
        self.baselines = Baselines(self.path)

    def read(self, debates: Sequence[Debate], step: int) -> list[Likelihoods]:
        """Return for each debate the likelihood of the gold answer after each solution, and the baseline."""
        mode = self.config.grader.mode_at(step)
        baselines = self._baselines(debates, step, mode)
        turns = [(at, turn) for at, debate in enumerate(debates) for turn in debate.turns if not turn.ballot]
        texts = [
            (problem := debates[at].problem, self._read_of(problem, solution_of(turn), mode))
            for at, turn in turns
        ]
        values: list[dict[TurnId, float | None]] = [{} for _ in debates]
        for (at, turn), value in zip(turns, self.logprobs(texts), strict=True):
            values[at][turn.id] = value
        return [
            Likelihoods(
                stream_of(of_turns, debate.protocol.num_agents, debate.protocol.num_rounds),
                baselines.get(debate.problem.id),
            )
            for debate, of_turns in zip(debates, values, strict=True)
        ]

    def _read_of(self, problem: Problem, solution: str, mode: Mode) -> str:
        whole = self.config.likelihood.reads == "solution"
        return solution if whole else reasoning_of(solution, problem, mode)

    def _baselines(self, debates: Sequence[Debate], step: int, mode: Mode) -> dict[str, float | None]:
        """Return the baseline of each problem by id. New ones are computed and stored."""
        kind = self.config.likelihood.baseline
        problems = {debate.problem.id: debate.problem for debate in debates}
        if kind == "none":
            return {}
        if kind == "empty":
            return dict(zip(problems, self.logprobs([(one, "") for one in problems.values()]), strict=True))
        new = [problem for id, problem in problems.items() if id not in self.baselines.known]
        texts = self._written(new, step) if new else []
        pairs = zip(new, texts, strict=True)
        values = self.logprobs([(problem, self._read_of(problem, text, mode)) for problem, text in pairs])
        long = [problem for problem, value in zip(new, values, strict=True) if value is None]
        empty = iter(self.logprobs([(problem, "") for problem in long]))  # what did not fit the context
        values = [next(empty) if value is None else value for value in values]
        rows = zip(new, texts, values, strict=True)
        self.baselines.add(Baseline(step, problem.id, text, value) for problem, text, value in rows)
        return {id: self.baselines.known[id] for id in problems}

    def _written(self, problems: Sequence[Problem], step: int) -> list[str]:
        """Return one solution of each problem, written by the reference model as a single agent."""
        seed = derive_seed(self.config.seed, "likelihood", step)
        alone = self.config.at_step(step).debate.one_round(alone=True)
        protocol = alone.model_copy(update={"tools": "none"})  # outputs are not read as reasoning
        with generators_kept(), self._reference.model():
            held = run_debates(problems, self._writer, protocol, seed=seed)
        return [solution_of(debate.turns[0]) for debate in held]

    @property
    def _reference(self) -> Reference:
        assert self.learner.reference is not None, "check_likelihood refuses a run without one"
        return self.learner.reference

    @cached_property
    def _writer(self) -> LocalPolicy:
        """The policy that samples from the reference while the model has its weights."""
        model: Any = self._reference.module or self.learner.model
        settings = local_settings(self.config)
        return LocalPolicy(model, self.tokenizer, compute=self.learner.compute, **settings)

    def logprobs(self, texts: Sequence[tuple[Problem, str]]) -> list[float | None]:
        """Return the mean log-probability per token of each problem's gold answer after its text, in nats.

        None if there is no gold answer, or if text and answer do not fit the context.
        """
        rows = [self.rows.row(problem, text) for problem, text in texts]
        known = [row for row in rows if row is not None]
        values = iter(reference_logprobs(self.learner, known) if known else ())
        return [None if row is None else next(values) for row in rows]

    @cached_property
    def rows(self) -> AnswerRows:
        """Makes the rows that the reader scores."""
        return AnswerRows(self.learner.model, self.tokenizer, self.config.likelihood)


def reference_logprobs(learner: Learner, rows: Sequence[Row]) -> list[float]:
    """Return the mean log-probability of the actions of each row under the learner's reference, in nats."""
    reference, most = learner.reference, learner.config.micro_batch_tokens
    assert reference is not None
    with reference.model() as model:
        return mean_logprobs(model, rows, max_tokens=most, compute=learner.compute)


@dataclass
class AnswerRows:
    """Makes rows from reasoning and gold answers for a model, with the prompt of ``config``."""

    model: Any
    tokenizer: Any
    config: LikelihoodConfig

    def row(self, problem: Problem, text: str) -> Row | None:
        """Return a row of ``text`` and the gold answer, whose tokens are to be scored.

        None if there is no gold answer, or if the row does not fit the context.
        """
        gold = gold_of(problem)
        if gold is None:
            return None
        before, answer = self.config.parts(text, gold)
        ids, prompt = self.encode(before + answer), self.encode(before)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ids, prompt, strict=False)))
        start = max(same, 1)  # one token may contain the end of the prompt and the beginning of the answer
        if start >= len(ids) or len(ids) > self.context:
            return None
        zeros, mask = np.zeros(len(ids), np.float32), np.arange(len(ids)) >= start
        tokens, kinds = np.array(ids, np.int64), mask.astype(np.int8)
        return Row(tokens, mask, zeros, zeros, kinds, group_id="", policy_version=0, turn=TurnId(0, 0))

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the ids of a raw text, with control tokens encoded as plain text."""
        return self._encoder.encode((Message("user", text),))

    @cached_property
    def context(self) -> int:
        """The maximum number of tokens that the model reads."""
        return getattr(self.model.config.get_text_config(), "max_position_embeddings", None) or 1 << 30

    @cached_property
    def _encoder(self) -> PromptEncoder:
        return PromptEncoder(self.tokenizer, chat=False, raw_prompt=as_it_is)


def as_it_is(messages: Sequence[Message]) -> str:
    """Return the content of a single message as the raw prompt."""
    return messages[0].content


@torch.no_grad()
def mean_logprobs(
    model: Any, rows: Sequence[Row], *, max_tokens: int, compute: torch.dtype | None
) -> list[float]:
    """Return the mean log-probability of the actions of each row under a model, in nats.

    ``max_tokens``: maximum tokens per pass, with padding. ``compute``: the data type of matrix products.
    """
    device = next(model.parameters()).device
    order = sorted(range(len(rows)), key=lambda index: -len(rows[index].input_ids))
    values: list[float] = []
    model.eval()
    with reading(model, share=False, compute=compute):
        for batch in micro_batches(rows, max_tokens, device=device):
            logprobs, _ = action_logprobs(model, batch, compute=compute)
            values += (logprobs.sum(1) / batch.mask.sum(1)).tolist()
    return [value for _, value in sorted(zip(order, values, strict=True))]


class Baseline(Value, frozen=True):
    """The baseline of a problem. ``step``: the first step with the problem. ``logprob``: None if too long."""

    step: int
    problem: str
    solution: str
    logprob: float | None


class Baselines:
    """RUN/likelihood.jsonl: the reference's solution of each problem, and how likely it makes the answer.

    Each problem has one line, written in the step that first drew it. A resumed run sets aside the lines of
    the steps that it repeats, and writes the same lines again.
    """

    def __init__(self, run: Path) -> None:
        self._path = run / "likelihood.jsonl"

    @cached_property
    def known(self) -> dict[str, float | None]:
        """The log-probabilities by problem. ValueError names an invalid line."""
        lines = decoded_lines(self._path, Baseline, "a baseline of the likelihood reward")
        return {one.problem: one.logprob for one in lines}

    def add(self, baselines: Iterable[Baseline]) -> None:
        """Store further baselines."""
        known = self.known
        with LineFile(self._path) as file:
            for one in baselines:
                file.write(in_ascii(msgspec.json.encode(one)))
                known[one.problem] = one.logprob
