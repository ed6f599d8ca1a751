"""The canary: after every update, does the engine compute with the model that learns?

A few fixed requests are answered by the engine. Its prompts, its cache, its head, the digests of its weights
and its log-probabilities are compared with the learner's own, and what differs is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from debate.hold import turn_request
from debate.prompting.fitting import context_budget
from debate.prompting.prompt import agent_prompt
from debate.prompting.seating import seat_debate
from debate.seeds import derive_seed
from debate.types import Completion, Message, Policy, Problem, SampleRequest, TurnId
from debate_rl.config import Config
from debate_rl.engines import local_settings
from debate_rl.inference.engine_report import Digest, EngineReport, digest
from debate_rl.inference.local import LocalPolicy
from debate_rl.inference.vllm_weights import weights_as_computed
from learner.types import Row
from learner.update.batches import collate

if TYPE_CHECKING:
    from debate_rl.training.session import Session

REQUESTS, TOKENS = 4, 16
BOUNDS = {torch.float32: 1e-4, torch.float16: 0.05, torch.bfloat16: 0.1}
"""How far apart log-probabilities may be on average: several times what rounding alone does, .013 to .03 in
bfloat16."""


class CanaryError(ValueError):
    """An engine that does not compute with the model that learns; the message names the cause."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a comparison gave: figures for metrics.jsonl, and what is wrong, if anything."""

    metrics: dict[str, float] = field(default_factory=dict)
    fault: str | None = None


def canary_requests(config: Config, problems: Sequence[Problem], policy: Policy) -> tuple[SampleRequest, ...]:
    """Return short requests with prompts of round 0 of the first problems, at the debate's temperatures."""
    return tuple(
        _request(config, problems[number % len(problems)], number, policy) for number in range(REQUESTS)
    )


def _request(config: Config, problem: Problem, number: int, policy: Policy) -> SampleRequest:
    seed = derive_seed(config.seed, "canary", number)
    debate = config.debate.model_copy(update={"seats": ()})  # whoever sits there: the policy is looked after
    seating, agent = seat_debate(problem, debate, seed), number % debate.num_agents
    prompt = agent_prompt(seating, [], agent, 0, context_budget(policy, config.debate))
    request = turn_request(seating, prompt, TurnId(agent, 0), seed, f"canary {number}")
    tokens = min(TOKENS, config.debate.max_tokens)
    return replace(request, max_tokens=tokens, stop=(), thinking_tokens=0)


class Canary:
    """Compares an engine's reports on ``requests`` with the model that learns.

    ``encode``: from messages to a prompt, as the learner's tokenizer has it. ``logprobs``: the learner's own,
    whose products are of the type ``compute``, None for its weights' own. Frozen weights are read once.
    """

    def __init__(
        self,
        model: Any,
        requests: Sequence[SampleRequest],
        *,
        encode: Callable[[tuple[Message, ...]], tuple[int, ...]],
        logprobs: Callable[[Sequence[Row]], torch.Tensor],
        compute: torch.dtype | None = None,
    ) -> None:
        self.requests = tuple(requests)
        self._model, self._compute, self._logprobs = model, compute, logprobs
        self._prompts = [encode(request.messages) for request in requests]
        self._frozen: dict[str, Digest] = {}
        self._trained: dict[str, Digest] = {}

    def compare(self, *reports: EngineReport) -> Finding:
        """Return how far the farthest engine is from the learner, and the first thing that is wrong."""
        dtype = getattr(torch, reports[0].dtype)
        before = self._trained
        self._read_weights(dtype)
        found = [self._compared(report, dtype, before) for report in reports]
        difference = max(finding.metrics["canary/logprob_difference"] for finding in found)
        share = min(finding.metrics["canary/weights_compared"] for finding in found)
        fault = next((finding.fault for finding in found if finding.fault), None)
        return Finding({"canary/logprob_difference": difference, "canary/weights_compared": share}, fault)

    def _compared(self, report: EngineReport, dtype: torch.dtype, before: dict[str, Digest]) -> Finding:
        rows = [
            _row(reply, request) for reply, request in zip(report.completions, self.requests, strict=True)
        ]
        difference = self._difference(rows)
        bound = max(BOUNDS[kind] for kind in (dtype, self._compute or torch.float32))
        own = self._frozen | self._trained
        compared = report.digests.keys() & own.keys()
        fault = (
            self._wrong_prompts(report)
            or ("head: the engine rounds its logits to 16 bits" if report.rounded_head else None)
            or _wrong_weights("base", report.digests, self._frozen, {})
            or _wrong_weights(_what_learns(self._trained), report.digests, self._trained, before)
            or _wrong_cache(report)
            or (None if difference <= bound else self._wrong_logprobs(rows, difference, bound))
        )
        share = len(compared) / len(own)
        return Finding({"canary/logprob_difference": difference, "canary/weights_compared": share}, fault)

    def _read_weights(self, dtype: torch.dtype) -> None:
        self._trained = {}
        for name, values, learns in weights_as_computed(self._model, dtype):
            if learns:
                self._trained[name] = digest(values, dtype)
            elif name not in self._frozen:
                self._frozen[name] = digest(values, dtype)

    def _difference(self, rows: Sequence[Row]) -> float:
        """Return the mean distance of the engine's log-probabilities from the learner's own."""
        batch = collate(rows)
        return float((self._logprobs(rows) - batch.sampling_logprobs)[batch.mask].abs().mean())

    def _wrong_prompts(self, report: EngineReport) -> str | None:
        if [reply.prompt_tokens for reply in report.completions] == self._prompts:
            return None
        return "template: the engine's prompts are not those of the learner's chat template and tokenizer"

    def _wrong_logprobs(self, rows: Sequence[Row], difference: float, bound: float) -> str:
        for name, others in _other_temperatures([row.temperature for row in rows]):
            pairs = zip(rows, others, strict=True)
            if self._difference([replace(row, temperature=other) for row, other in pairs]) <= bound:
                return f"temperature: the engine's log-probabilities are those at {name}"
        return (
            f"log-probabilities are {difference:.2g} away from the learner's on average (at most {bound:g}), "
            "and neither weights nor temperature say why"
        )


def _row(reply: Completion, request: SampleRequest) -> Row:
    ids = np.array(reply.prompt_tokens + reply.tokens, np.int64)
    start = len(reply.prompt_tokens)
    mask, logprobs = np.zeros(len(ids), np.bool_), np.zeros(len(ids), np.float32)
    mask[start:], logprobs[start:] = True, reply.logprobs
    mask[[start + index for index in reply.forced]] = False
    nothing, nobody = np.zeros(len(ids), np.float32), np.zeros(len(ids), np.int8)
    of = (request.debate, reply.policy_version, request.turn, request.temperature)
    return Row(ids, mask, logprobs, nothing, nobody, *of)


def _other_temperatures(asked: Sequence[float]) -> Iterator[tuple[str, list[float]]]:
    """Yield what an engine might have made of the temperatures: one for all of them, or twice each."""
    for value in sorted({1.0, *asked}):
        yield f"temperature {value:g} in every request", [value] * len(asked)
    yield "each temperature applied twice", [value**2 for value in asked]


def _wrong_cache(report: EngineReport) -> str | None:
    if not report.cached_tokens:
        return None
    return f"cache: {report.cached_tokens} tokens of a prompt came from the prefix cache of older weights"


def _what_learns(trained: Iterable[str]) -> str:
    return "adapter" if any(".lora_" in name for name in trained) else "weights"


def _wrong_weights(
    what: str, found: dict[str, Digest], own: dict[str, Digest], before: dict[str, Digest]
) -> str | None:
    """Return what is wrong with some weights: nothing, all or some left as they were, or other values."""
    compared = own.keys() & found.keys()
    wrong = [name for name in own if name in compared and found[name] != own[name]]
    if not wrong:
        return None
    named = f"{len(wrong)} of {len(compared)} matrices: {_some(wrong)}"
    changed = [name for name in own if name in compared and own[name] != before.get(name)]
    if all(found[name] == before.get(name) for name in wrong):
        return (
            f"stale {what}: {'nothing' if wrong == changed else 'not all'} of the update was taken, {named}"
        )
    if all(found[name] == (0, 0) for name in wrong):
        return f"half a file: the engine's {what} is empty in {named}"
    return f"wrong {what}: the engine computes with other values in {named}"


def _some(names: Sequence[str]) -> str:
    """Return a few of the names.

    >>> _some(["a", "b"]), _some(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c, ...')
    """
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def canary_of(session: Session) -> Canary | None:
    """Return what looks after an engine with weights of its own; None where the model itself speaks."""
    if not hasattr(session.policy, "check"):
        return None
    config, model, learner = session.config, session.model, session.learner
    own = LocalPolicy(model, session.tokenizer, **local_settings(config))
    requests = canary_requests(config, session.data.train, session.policy)
    return Canary(model, requests, encode=own.encode, logprobs=learner.logprobs, compute=learner.compute)
