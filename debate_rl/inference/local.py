"""The local policy: a transformers model that answers all live debates together, in batches.

Debates run concurrently. The policy collects requests until every live debate waits for it, sorts them by
(debate, turn), and samples them in chunks of ``batch_size``. So the batches, and every bit of the results,
depend on seeds and never on timing.
"""

# pyright: standard, reportMissingTypeStubs=false
# torch, transformers and tokenizers are only partly typed: strict rules stop at their borders.

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from debate.types import Completion, Message, SampleRequest
from debate_rl.inference.sampler import Draw, Drawn, StopWatch, sample_batch
from debate_rl.inference.speech import SpeakingPolicy, Speech, ids_of_ends, refuse_impossible
from learner.update.ranks import trained

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


OTHER_LOOP = (
    "this policy is in use by debates of another event loop or thread: wait for them to end, or use another "
    "policy for each"
)
Request = TypeVar("Request")
Result = TypeVar("Result")


class Batcher(Generic[Request, Result]):
    """Collects requests and answers them together once every live debate has one pending.

    A debate is live within a ``seat`` block. ``key`` gives a request's (debate, round, agent), which orders a
    batch and identifies the debate. Requests from outside any block count as one more debate; if no block is
    open, they are answered at once. A second event loop is refused while one is served, since it might wait
    forever.
    """

    def __init__(
        self,
        answer_all: Callable[[Sequence[Request]], Sequence[Result]],
        key: Callable[[Request], tuple[str, int, int]],
    ) -> None:
        self._answer_all, self._key = answer_all, key
        self._seats = self._held = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending: list[tuple[Request, asyncio.Future[Result]]] = []
        self._scheduled = False

    @contextmanager
    def seat(self) -> Generator[None]:
        """Count one debate as live until the block ends."""
        self._enter_loop()
        self._seats += 1
        try:
            yield
        finally:
            self._seats -= 1
            self._check()

    @contextmanager
    def hold(self) -> Generator[None]:
        """Answer nothing within the block. After it, the caller must at once send a request or end."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self._check()

    async def submit(self, request: Request) -> Result:
        """Return the result of this request. An exception is raised in all requests of the batch."""
        self._enter_loop()
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._pending.append((request, future))
        self._check()
        return await future

    def _enter_loop(self) -> None:
        """Serve the running event loop from now on. RuntimeError while another loop is being served."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # a seat taken before the loop runs
        in_use = self._seats > 0 or any(not future.done() for _, future in self._pending)
        if in_use and self._loop is not None and self._loop is not loop and not self._loop.is_closed():
            raise RuntimeError(OTHER_LOOP)
        self._loop = loop

    def _check(self) -> None:
        """Schedule ``_flush`` once per turn of the event loop.

        ``call_soon`` runs it after the other requests of the same gather, which are already in the queue.
        """
        if self._pending and not self._scheduled:
            self._scheduled = True
            self._pending[0][1].get_loop().call_soon(self._flush)

    def _count_waiting(self) -> int:
        """Return how many debates wait.

        A debate sends one request per agent and round. So if a key occurs twice, two debates have this name.
        """
        debates: Counter[tuple[str, int]] = Counter()
        for (name, number, _), count in Counter(self._key(one) for one, _ in self._pending).items():
            debates[name, number] = max(count, debates[name, number])
        return debates.total()

    def _flush(self) -> None:
        self._scheduled = False
        self._pending = [(request, future) for request, future in self._pending if not future.done()]
        if self._held or not self._pending or self._count_waiting() < self._seats:
            return  # the next request, or the next debate that ends, checks again
        batch = sorted(self._pending, key=lambda pair: self._key(pair[0]))
        self._pending = []
        try:
            results = self._answer_all([request for request, _ in batch])
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():  # a caller may have been cancelled meanwhile, by Ctrl-C for one
                future.set_result(result)


class LocalPolicy(SpeakingPolicy):
    """A policy over a model in this process, on the model's device.

    ``chat`` None means a chat model if the tokenizer has a chat template. With ``thinking``, every reply
    begins within a think block, which the prompt opens if the template does not. Thinking that has spent a
    request's ``thinking_tokens`` is closed by force, and the answer is sampled after it. ``context_tokens``
    (prompt plus completion) defaults to the model's limit; completions are cut to fit (stop_reason "length"),
    and a prompt that leaves no room for a reply raises ValueError. ``compute``: the type of matrix products,
    None for the type of the weights. It must equal the learner's type: products in bfloat16 round small
    updates of float32 weights away.

    ``on_ended`` is called with the number of replies that have just ended, while others of their batch go on.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        chat: bool | None = None,
        thinking: bool = False,
        raw_prompt: Callable[[tuple[Message, ...]], str] | None = None,
        batch_size: int = 128,
        context_tokens: int | None = None,
        version: int = 0,
        compute: torch.dtype | None = None,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self.version = version
        self._model, self._batch_size, self._compute = model, batch_size, compute
        limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._speech = Speech(
            tokenizer,
            ends=end_tokens(model, tokenizer),
            chat=chat,
            thinking=thinking,
            raw_prompt=raw_prompt,
            context_tokens=context_tokens or limit,
        )
        self._watch = StopWatch(self._speech.text, model.config.get_text_config().vocab_size)
        self._batcher: Batcher[SampleRequest, Completion] = Batcher(
            self.sample_all, lambda one: (one.debate, one.turn.round, one.turn.agent)
        )
        self._frozen: tuple[dict[str, torch.Tensor], int] | None = None
        self.on_ended: Callable[[int], None] | None = None

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request, together with the requests of all other live debates."""
        return await self._batcher.submit(request)

    def seat(self) -> AbstractContextManager[None]:
        """Count one debate as live. Nothing is sampled until it waits for a completion or has ended."""
        return self._batcher.seat()

    def hold(self) -> AbstractContextManager[None]:
        """Sample nothing within the block, for instance while a program runs."""
        return self._batcher.hold()

    async def update(self, weights: object, version: int) -> None:
        """Load a state dict (of the adapter, for LoRA). None and the policy's own model change nothing."""
        if weights is not None and weights is not self._model:
            load_weights(self._model, weights)
        self.version = version

    def freeze(self) -> None:
        """Copy the trained weights. The copy answers the requests of frozen seats from now on."""
        weights = {name: value.detach().clone() for name, value in trained(self._model).items()}
        self._frozen = weights, self.version

    def sample_all(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """Answer requests in chunks of ``batch_size``, in the given order, without an event loop.

        Requests of frozen seats are sampled after the others, with the frozen weights.
        """
        for request in requests:
            refuse_impossible(request)
        frozen = [self._frozen is not None and request.seat == "frozen" for request in requests]
        pairs = list(zip(requests, frozen, strict=True))
        own = iter(self._answered([one for one, still in pairs if not still], self.version))
        if not any(frozen) or self._frozen is None:
            return list(own)
        with self._speaking_with(self._frozen[0]):
            kept = iter(self._answered([one for one, still in pairs if still], self._frozen[1]))
        return [next(kept if still else own) for still in frozen]

    @contextmanager
    def _speaking_with(self, weights: Mapping[str, torch.Tensor]) -> Generator[None]:
        """Put these weights into the model within the block, and restore the model's own after it."""
        own = trained(self._model)
        present = {name: value.data for name, value in own.items()}
        try:
            for name, value in own.items():
                value.data = weights[name]
            yield
        finally:
            for name, value in own.items():
                value.data = present[name]

    def _answered(self, requests: Sequence[SampleRequest], version: int) -> list[Completion]:
        """Return the replies that the model's current weights, of this version, generate."""
        speech = self._speech
        pairs = [(request, speech.prompt(request)) for request in requests]
        thoughts = [
            speech.thought(one) for one in self._sampled([speech.thinking_draw(*pair) for pair in pairs])
        ]
        thought = list(zip(pairs, thoughts, strict=True))
        answers = self._sampled([speech.answer_draw(*pair, one) for pair, one in thought], self.on_ended)
        return [
            speech.completion(prompt, one, answer, version=version)
            for ((_, prompt), one), answer in zip(thought, answers, strict=True)
        ]

    def _sampled(
        self, draws: Sequence[Draw | None], ended: Callable[[int], None] | None = None
    ) -> list[Drawn | None]:
        """Sample the draws in batches; return the results in order, with None for a draw that is None."""
        import torch

        wanted = [draw for draw in draws if draw is not None]
        drawn: list[Drawn] = []
        for start in range(0, len(wanted), self._batch_size):
            chunk = wanted[start : start + self._batch_size]
            with torch.autocast(self._model.device.type, self._compute, enabled=self._compute is not None):
                own = {"ends": self._speech.ends, "watch": self._watch, "ended": ended}
                drawn += sample_batch(self._model, chunk, **own)
        left = iter(drawn)
        return [None if draw is None else next(left) for draw in draws]


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Return every id that ends a reply: the model's, the generation configuration's and the tokenizer's."""
    return ids_of_ends(model.config, model.generation_config, tokenizer)


def load_weights(model: PreTrainedModel, weights: object) -> None:
    """Load a state dict into the model. ValueError for unknown or missing names."""
    if not isinstance(weights, Mapping):
        raise ValueError(f"weights must be a state dict or None, got {type(weights).__name__}")
    state: dict[str, torch.Tensor] = dict(weights)
    if hasattr(model, "peft_config") and any("lora_" in name for name in state):
        from peft import set_peft_model_state_dict

        unknown = set_peft_model_state_dict(model, state).unexpected_keys
        missing: list[str] = []
    else:
        missing, unknown = model.load_state_dict(state, strict=False)
        missing = [name for name in missing if name not in (model._tied_weights_keys or ())]
    if unknown or missing:
        raise ValueError(f"weights do not fit the model: unknown {list(unknown)[:3]}, missing {missing[:3]}")
