"""Batched, KV-cached sampling with one random stream for each request and exact log-probabilities.

Tokens are drawn by inversion of the distribution function, from uniforms that depend only on the request's
seed. So a reply does not depend on the other requests of its batch, except that the last bits of logits
depend on the batch's shape. Prompts are padded on the left. Finished rows are dropped when a fifth of the
batch is done.
"""

# pyright: standard, reportMissingTypeStubs=false
# torch, transformers and tokenizers are only partly typed: strict rules stop at their borders.

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from debate.types import StopReason
from debate_rl.inference.cpu_steps import CpuSteps, fits
from debate_rl.inference.decoding import TokenText
from learner.update.batches import pack

if TYPE_CHECKING:
    from transformers import PreTrainedModel


THINK_START, THINK_END = "<think>", "</think>"
_OPENING_TOKENS = 16  # a leading think tag is looked for in this many tokens


@dataclass(slots=True)
class RowStop:
    """The stop strings of one row, and whether it is within a think block (None: not yet known)."""

    stop: tuple[str, ...]
    thinking: bool | None = None


@dataclass(slots=True)
class StopWatch:
    """Finds stop strings in rows of ids of one tokenizer. ``size`` is the model's vocabulary size V."""

    text: TokenText
    size: int
    _tables: dict[tuple[str, ...], torch.Tensor] = field(default_factory=dict)

    def table(self, stop: tuple[str, ...]) -> torch.Tensor:
        """Return (V,) bool: the tokens whose text could complete one of these strings (or end thinking)."""
        if stop not in self._tables:
            pieces = map(self.text.piece, range(self.size))
            self._tables[stop] = torch.tensor(_may_end(pieces, (*stop, THINK_END) if stop else ()))
        return self._tables[stop]

    def ends(self, row: RowStop, tokens: torch.Tensor) -> bool:
        """Return whether the last of a row's ``tokens`` (T,) completes a stop string. Updates the row."""
        if row.thinking is None:
            opening = self.text.decode(tokens[:_OPENING_TOKENS].tolist()).lstrip()
            if opening.startswith(THINK_START) or not THINK_START.startswith(opening):
                row.thinking = opening.startswith(THINK_START)
        if row.thinking:
            row.thinking = not self._completed(THINK_END, tokens)
            return False
        return any(self._completed(string, tokens) for string in row.stop)

    def _completed(self, string: str, tokens: torch.Tensor) -> bool:
        window = tokens[-len(string.encode()) - 1 :].tolist()
        before = len(self.text.decode(window[:-1]).rstrip("\ufffd"))  # a cut character is not finished
        return string in self.text.decode(window)[max(0, before - len(string) + 1) :]


def _may_end(pieces: Iterable[bytes], strings: Sequence[str]) -> list[bool]:
    """Return whether a token with these bytes could complete one of the strings.

    >>> _may_end([b">", b"s> x", b"x</s>", b"</s", b"s"], ["</s>"])
    [True, True, True, False, False]
    """
    whole = [string.encode() for string in strings]
    endings = tuple({data[i:] for data in whole for i in range(1, len(data))})
    return [piece.startswith(endings) or any(data in piece for data in whole) for piece in pieces]


class ModelSteps:
    """Any transformers causal LM (also with LoRA) and its cache, for one batch at a time.

    Logits are (B, V) float32 of the last position.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        from transformers import DynamicCache

        base = model.get_base_model() if hasattr(model, "peft_config") else model  # pyright: ignore[reportCallIssue]
        accepted = inspect.signature(base.forward).parameters
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._model = model
        self._cache = DynamicCache(config=model.config)
        self._mask = torch.empty(0)
        self._position = torch.empty(0)

    def prefill(self, ids: torch.Tensor, pad: torch.Tensor, more: int) -> torch.Tensor:
        """Process prompts (B, P), of which the first ``pad`` (B,) positions are padding.

        ``more`` tokens may follow.
        """
        columns = torch.arange(ids.shape[1], device=ids.device)
        self._mask = (columns >= pad[:, None]).long()
        self._position = ids.shape[1] - pad
        return self._forward(ids, (columns - pad[:, None]).clamp(min=0))

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Process one more token of each row (B,)."""
        self._mask = torch.nn.functional.pad(self._mask, (0, 1), value=1)
        logits = self._forward(tokens[:, None], self._position[:, None])
        self._position = self._position + 1
        return logits

    def keep(self, rows: torch.Tensor) -> None:
        """Keep only these rows of the cache."""
        self._cache.batch_select_indices(rows)
        self._mask, self._position = self._mask[rows], self._position[rows]

    def _forward(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        output = self._model(
            input_ids=ids,
            attention_mask=self._mask,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            **self._last_only,
        )
        return output.logits[:, -1].float()


Steps: TypeAlias = ModelSteps | CpuSteps


def steps_for(model: PreTrainedModel) -> Steps:
    """Return the fast path for common models in float32 on a CPU, else the model's own forward."""
    if torch.is_autocast_enabled(model.device.type):
        return ModelSteps(model)
    return CpuSteps(model) if fits(model) else ModelSteps(model)


_COMPACT_BELOW = 0.8


@dataclass(frozen=True, slots=True)
class Draw:
    """One row to sample: at most ``max_tokens`` tokens after ``prompt``; temperature 0 is argmax."""

    prompt: tuple[int, ...]
    max_tokens: int
    temperature: float
    seed: int
    stop: tuple[str, ...] = ()
    thinking: bool | None = None
    """Whether the row begins in a think block, where stop strings have no effect. None: its tokens decide."""
    top_p: float = 1.0
    top_k: int = 0


@dataclass(frozen=True, slots=True)
class Drawn:
    """The result of a draw: tokens (T,) with the end token, and log-probabilities (T,) in nats."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop_reason: StopReason


def likely_only(logps: torch.Tensor, top_p: torch.Tensor, top_k: torch.Tensor) -> torch.Tensor:
    """Return log-probabilities (B, V) renormalised over the likely tokens; other tokens have -inf.

    Each row keeps its ``top_k`` (B,) most likely tokens (0: all) [Fan et al. 2018, arXiv 1805.04833], and of
    these the fewest with a total probability of at least ``top_p`` (B,) [Holtzman et al. 2020, arXiv
    1904.09751]. Of equally likely tokens, the first ones are kept.

    >>> logps = torch.tensor([[0.5, 0.1, 0.4]]).log()
    >>> likely_only(logps, torch.tensor([0.8]), torch.tensor([0])).exp()
    tensor([[0.5556, 0.0000, 0.4444]])
    """
    ordered, tokens = logps.sort(dim=-1, descending=True, stable=True)
    ranks = torch.arange(logps.shape[1], device=logps.device)
    out = (top_k[:, None] > 0) & (ranks >= top_k[:, None])
    mass = torch.softmax(ordered.double().masked_fill(out, -torch.inf), dim=-1)
    out |= (mass.cumsum(dim=-1) - mass >= top_p[:, None]) & (top_p < 1)[:, None]
    kept = torch.log_softmax(ordered.masked_fill(out, -torch.inf), dim=-1)
    return torch.empty_like(logps).scatter_(1, tokens, kept)


def draw_tokens(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    uniform: torch.Tensor,
    *,
    likely: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a token (B,) for each row of logits (B, V), and its log-probability (B,) at the temperature.

    ``uniform`` (B,) in [0, 1) picks by inversion of the distribution function, in float64. Rows with
    temperature 0 take the argmax, and their log-probability is that of temperature 1. ``likely``: top_p and
    top_k (B,) of ``likely_only``, which is applied after the temperature.

    >>> logits = torch.tensor([[0.0, 0.0], [0.0, 0.0]])
    >>> draw_tokens(logits, torch.tensor([1.0, 1.0]), torch.tensor([0.49, 0.51], dtype=torch.float64))[0]
    tensor([0, 1])
    """
    greedy = temperature == 0
    logps = torch.log_softmax(logits / torch.where(greedy, 1.0, temperature)[:, None], dim=-1)
    if likely is not None:
        logps = likely_only(logps, *likely)
    mass = logps.double().exp_().cumsum(dim=-1)
    picked = torch.searchsorted(mass, (uniform * mass[:, -1])[:, None], right=True)[:, 0]
    tokens = torch.where(greedy, logits.argmax(dim=-1), picked.clamp(max=logits.shape[1] - 1))
    return tokens, logps.gather(1, tokens[:, None])[:, 0]


@torch.no_grad()
def sample_batch(
    model: PreTrainedModel,
    draws: Sequence[Draw],
    *,
    ends: frozenset[int],
    watch: StopWatch,
    steps: Steps | None = None,
    ended: Callable[[int], None] | None = None,
) -> list[Drawn]:
    """Return one result for each draw, in order. ``ends`` are the ids that end a reply.

    ``ended`` is called with the number of rows that have just ended.
    """
    with _evaluating(model):
        batch = _Batch(draws, ends=ends, watch=watch, device=model.device)
        steps = steps or steps_for(model)
        logits = _read_prompts(steps, batch)
        while True:
            tokens, before = batch.draw(logits), batch.left
            kept = batch.advance(tokens)
            if ended is not None and batch.left < before:
                ended(before - batch.left)
            if not len(kept):
                return batch.results()
            if len(kept) < len(tokens):
                steps.keep(kept)
            logits = steps.step(tokens[kept])


def _read_prompts(steps: Steps, batch: _Batch) -> torch.Tensor:
    """Return the first logits (B, V).

    Equal prompts, as in debates on one problem, are read once. Where arithmetic is the cost, common prefixes
    are read once too.
    """
    ids, pad = batch.prompts()
    if isinstance(steps, CpuSteps) and not steps.is_small:
        packed = pack([row[gap:] for row, gap in zip(ids.numpy(), pad.tolist(), strict=True)])
        if len(packed.tokens) < _COMPACT_BELOW * ids.numel():
            return steps.prefill_packed(packed, batch.longest)
    different, rows = torch.unique(torch.cat([pad[:, None], ids], dim=1), dim=0, return_inverse=True)
    if len(different) > _COMPACT_BELOW * len(ids):
        return steps.prefill(ids, pad, batch.longest)
    logits = steps.prefill(different[:, 1:], different[:, 0], batch.longest)
    steps.keep(rows)
    return logits[rows]


class _Batch:
    """The rows being sampled, their uniforms, and everything drawn so far. B draws of up to T tokens."""

    def __init__(
        self, draws: Sequence[Draw], *, ends: frozenset[int], watch: StopWatch, device: torch.device
    ) -> None:
        self._draws, self._watch, self._device = draws, watch, device
        self._limits = torch.tensor([draw.max_tokens for draw in draws], device=device)
        self._temperature = torch.tensor([draw.temperature for draw in draws], device=device)
        self._likely = _likely(draws, device)
        width = max(draw.max_tokens for draw in draws)
        uniform = [np.random.Generator(np.random.PCG64(draw.seed)).random(width) for draw in draws]
        self._uniform = torch.from_numpy(np.stack(uniform)).to(device)  # (B, T) float64 in [0, 1)
        self._ends = torch.zeros(watch.size, dtype=torch.bool, device=device)
        self._ends[[end for end in ends if end < watch.size]] = True
        self._stops = [RowStop(draw.stop, thinking=draw.thinking) for draw in draws]
        sets = sorted({draw.stop for draw in draws})
        self._tables = torch.stack([watch.table(one) for one in sets]).to(device) if any(sets) else None
        self._table_of = torch.tensor([sets.index(draw.stop) for draw in draws], device=device)
        size = self._uniform.shape
        self._tokens = torch.zeros(size, dtype=torch.long, device=device)
        self._logprobs = torch.zeros(size, device=device)
        self._lengths = torch.zeros(len(draws), dtype=torch.long, device=device)
        self._stopped = torch.zeros(len(draws), dtype=torch.bool, device=device)
        self._rows = torch.arange(len(draws), device=device)
        self._alive = torch.ones(len(draws), dtype=torch.bool, device=device)
        self._time = 0
        self.left = len(draws)

    @property
    def longest(self) -> int:
        """The maximum number of tokens of a row."""
        return self._tokens.shape[1]

    def prompts(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the prompts padded with 0 on the left (B, P) and the number of padding positions (B,)."""
        longest = max(len(draw.prompt) for draw in self._draws)
        pad = [longest - len(draw.prompt) for draw in self._draws]
        ids = [[0] * n + list(draw.prompt) for n, draw in zip(pad, self._draws, strict=True)]
        return torch.tensor(ids, device=self._device), torch.tensor(pad, device=self._device)

    def draw(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the next token of each current row and store it."""
        rows, time = self._rows, self._time
        likely = self._likely and (self._likely[0][rows], self._likely[1][rows])
        tokens, logprobs = draw_tokens(
            logits, self._temperature[rows], self._uniform[rows, time], likely=likely
        )
        self._tokens[rows, time] = tokens
        self._logprobs[rows, time] = logprobs
        return tokens

    def advance(self, tokens: torch.Tensor) -> torch.Tensor:
        """Close the rows that these tokens end. Return which current rows to keep: none if all have ended."""
        ended = self._ends[tokens] | self._completes_stop(tokens)
        self._time += 1
        newly = self._alive & (ended | (self._limits[self._rows] <= self._time))
        self._lengths[self._rows[newly]] = self._time
        self._stopped[self._rows[newly & ended]] = True
        self._alive = self._alive & ~newly
        self.left = count = int(self._alive.sum())
        if count > 0 and count >= _COMPACT_BELOW * len(tokens):
            return torch.arange(len(tokens), device=self._device)
        kept = self._alive.nonzero()[:, 0]
        self._rows, self._alive = self._rows[kept], self._alive[kept]
        return kept

    def results(self) -> list[Drawn]:
        """Return every row's tokens, log-probabilities and reason, in the order of the draws."""
        tokens, logprobs = self._tokens.tolist(), self._logprobs.tolist()
        if any(map(math.isnan, self._logprobs.sum(dim=1).tolist())):
            raise ValueError(
                "the model's logits are not numbers (NaN), because its weights have diverged; return to an "
                "earlier checkpoint, or train with a lower learner.lr"
            )
        return [
            Drawn(tuple(row[:length]), tuple(logps[:length]), "stop" if stopped else "length")
            for row, logps, length, stopped in zip(
                tokens, logprobs, self._lengths.tolist(), self._stopped.tolist(), strict=True
            )
        ]

    def _completes_stop(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return (b,) whether each current row's token completes one of its stop strings."""
        completes = torch.zeros_like(self._alive)
        if self._tables is None:
            return completes
        suspects = (self._tables[self._table_of[self._rows], tokens] & self._alive).nonzero()[:, 0]
        for index, row in zip(suspects.tolist(), self._rows[suspects].tolist(), strict=True):
            recent = self._tokens[row, : self._time + 1]
            completes[index] = self._watch.ends(self._stops[row], recent)
        return completes


def _likely(draws: Sequence[Draw], device: torch.device) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return top_p and top_k (B,), with 1 and 0 for greedy rows; None if no row restricts its tokens."""
    rows = [(draw.top_p, draw.top_k) if draw.temperature else (1.0, 0) for draw in draws]
    if set(rows) == {(1.0, 0)}:
        return None
    top_p, top_k = zip(*rows, strict=True)
    return torch.tensor(top_p, device=device), torch.tensor(top_k, device=device)


@contextmanager
def _evaluating(model: PreTrainedModel) -> Generator[None]:
    """Put the model into eval mode within the block, and restore its mode after it."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
