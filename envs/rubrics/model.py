"""A verifier model: any policy, sampled in its own event loop while debates run in another.

Verdicts are cached by the content of the request. An unusable reply gives no verdict, and its fault is
counted. If the model stops answering, VerifierError ends the run.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from statistics import fmean
from types import MappingProxyType
from typing import TypeVar

from debate.policy import opens_thinking, token_counts
from debate.seeds import derive_seed
from debate.types import Completion, Policy, Problem, SampleRequest, TurnId
from debate.values import whole_text
from envs.causes.rules import WrongReply, cause_of
from envs.errors import one_line
from envs.rubrics.verdicts import (
    LONGEST_SAID,
    Line,
    Stated,
    Verdict,
    VerdictCache,
    VerdictPrompt,
    label_of,
    label_prompt,
    score_of,
    score_prompt,
    stated,
)
from envs.types import FAULTS

T = TypeVar("T")
MOST_WITHOUT = 0.5  # maximum fraction of the replies of a step or evaluation that may lack a verdict
MOST_FAILED = 24  # consecutive failed requests after which the verifier model counts as gone


class VerifierError(ValueError):
    """The verifier model gives no verdicts; the message is one line about the last requests."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Sampling settings of a verifier model. A verdict is the mean of ``samples`` scores."""

    max_tokens: int = 1024
    thinking_tokens: int = 0
    temperature: float = 0.0
    samples: int = 1
    concurrency: int = 64
    timeout_s: float = 600.0


class VerifierModel:
    """Score replies by rubrics, many at once, from any thread.

    ``name`` identifies the model in errors and in the cache. ``open_policy`` is called once, for the first
    request that is not in the cache.
    """

    def __init__(
        self,
        open_policy: Callable[[], Policy],
        name: str,
        *,
        asking: Asking | None = None,
        cache: VerdictCache | None = None,
    ) -> None:
        self.name = name
        self._open = open_policy
        self._asking = asking or Asking()
        self._cache = cache or VerdictCache(None)
        self._lock = threading.RLock()
        self._tally: Counter[str] = Counter()
        self._failed_in_a_row, self._last_failure = 0, ""
        self._checked = False
        self._under_way: dict[str, asyncio.Task[Stated]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gate = asyncio.Semaphore(self._asking.concurrency)

    def score(self, problem: Problem, reply: str, *, rubric: str, fixed: bool = False) -> Future[Verdict]:
        """Start to score a reply by a rubric; the problem's own rubric takes precedence unless ``fixed``."""
        return self._begin(self._score(score_prompt(problem, reply, rubric=rubric, fixed=fixed)))

    def label(
        self, problem: Problem, reply: str, *, question: str, labels: Mapping[str, str]
    ) -> Future[Stated]:
        """Start to ask which of the labels applies to a reply."""
        prompt = label_prompt(problem, reply, question=question, labels=labels)
        return self._begin(self._label(prompt, labels))

    def check(self) -> None:
        """Send one small request, once; raise VerifierError if it fails, so that no run starts."""
        if self._checked:
            return
        probe = score_prompt(Problem("probe", "What is 2 + 2?"), "4", rubric="The reply is correct.")
        if failed := self._begin(self._failure(probe)).result():
            raise VerifierError(f"verifier.endpoint: {self.name} does not answer: {failed}")
        self._checked = True

    def take_tally(self) -> Counter[str]:
        """Return the counts since the last call: of "verdicts", of each of ``FAULTS``, of "requests" and
        "cached" answers, and of the "prompt_tokens", "tokens" and "milliseconds" of the requests.
        """
        with self._lock:
            tally, self._tally = self._tally, Counter()
        return tally

    def refuse_silent(self, tally: Mapping[str, int]) -> None:
        """Raise VerifierError if at least 8 replies, and over ``MOST_WITHOUT`` of all, have no verdict."""
        faults = {fault: count for fault in FAULTS if (count := tally.get(fault, 0))}
        without, verdicts = sum(faults.values()), tally.get("verdicts", 0)
        if without >= 8 and without > MOST_WITHOUT * (without + verdicts):
            words = ", ".join(f"{count} {fault}" for fault, count in faults.items())
            last = f"; the last failure: {self._last_failure}" if self._last_failure else ""
            raise VerifierError(
                f"verifier.endpoint: {self.name} gave no verdict on {without} of {without + verdicts} "
                f"replies ({words}), a fraction above {MOST_WITHOUT:g}{last}"
            )

    def close(self) -> None:
        """Cancel open requests and end the thread; a second call does nothing."""
        loop, self._loop = self._loop, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(_cancel_others(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
        self._cache.close()

    def _begin(self, call: Coroutine[object, object, T]) -> Future[T]:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name="verifier model", daemon=True).start()
            return asyncio.run_coroutine_threadsafe(call, self._loop)

    async def _score(self, prompt: VerdictPrompt) -> Verdict:
        samples = (self._stated(prompt, sample) for sample in range(self._asking.samples))
        verdict = together([score_of(one) for one in await asyncio.gather(*samples)])
        self._count(verdict.fault or "verdicts")
        return verdict

    async def _label(self, prompt: VerdictPrompt, labels: Collection[str]) -> Stated:
        label = label_of(await self._stated(prompt, 0), labels)
        self._count(label.fault or "verdicts")
        return label

    async def _failure(self, prompt: VerdictPrompt) -> str:
        """Return why a prompt gets no answer; "" if it gets any answer."""
        try:
            await self._sample(prompt, 0, "probe")
        except TimeoutError:
            return f"no answer in {self._asking.timeout_s:g} s"
        except Exception as error:
            return _in_words(error)
        return ""

    async def _sample(self, prompt: VerdictPrompt, sample: int, name: str) -> Completion:
        asking = self._asking
        request = SampleRequest(
            messages=prompt.messages,
            temperature=asking.temperature,
            max_tokens=asking.max_tokens,
            stop=(),
            seed=derive_seed(0, "verdict", sample),
            debate=name,
            turn=TurnId(0, sample),
            thinking_tokens=asking.thinking_tokens,
        )
        async with asyncio.timeout(asking.timeout_s):
            return (await self._speaker.sample(request)).whole()

    @cached_property
    def _speaker(self) -> Policy:
        return self._open()

    async def _stated(self, prompt: VerdictPrompt, sample: int) -> Stated:
        """Return the model's statement; requests with the same content are sent only once."""
        asking = self._asking
        how = [asking.max_tokens, asking.thinking_tokens, asking.temperature, sample]
        content = [self.name, *how, *(message.content for message in prompt.messages)]
        key = sha256(json.dumps(content).encode()).hexdigest()
        kept = self._cache.get(key)
        if kept is None and key in self._under_way:
            kept = await asyncio.shield(self._under_way[key])
        if kept is not None:
            self._count("cached")
            return kept
        task = self._under_way[key] = asyncio.create_task(self._asked(prompt, sample, key))
        task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return await task

    async def _asked(self, prompt: VerdictPrompt, sample: int, key: str) -> Stated:
        async with self._gate:
            if self._failed_in_a_row >= MOST_FAILED:
                raise VerifierError(
                    f"verifier.endpoint: {self.name} gave no answer to {MOST_FAILED} requests in a row; the "
                    f"last failure: {self._last_failure}"
                )
            policy, started = self._speaker, time.perf_counter()
            try:
                completion = await self._sample(prompt, sample, key)
            except Exception as error:  # any failure of a server or a policy counts as no verdict
                self._failed_in_a_row += 1
                late, words = _timed_out(error), _in_words(error)
                self._last_failure = f"no answer in time ({words})" if late else words
                return Stated(None, "timeout" if late else "failed")
            finally:
                self._count("requests")
                self._count("milliseconds", round(1000 * (time.perf_counter() - started)))
        self._failed_in_a_row = 0
        truncated = completion.stop_reason == "length"
        in_thinking = opens_thinking(policy, prompt.messages)
        value = stated(completion.text, prompt.code, truncated=truncated, in_thinking=in_thinking)
        read, generated = token_counts(completion)
        self._count("prompt_tokens", read)
        self._count("tokens", generated)
        said = whole_text(completion.text[:LONGEST_SAID])
        self._cache.put(Line(key, self.name, value.value, value.fault, said, read, generated))
        return value

    def _count(self, name: str, count: int = 1) -> None:
        with self._lock:
            self._tally[name] += count


def together(verdicts: list[Verdict]) -> Verdict:
    """Return the mean of the scores. There is no verdict unless more than half of the samples have a score.

    >>> together([Verdict(1.0), Verdict(0.5), Verdict(None, "several")]).score
    0.75
    >>> together([Verdict(1.0), Verdict(None, "several")]).fault
    'several'
    """
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    if 2 * len(scores) > len(verdicts):
        return Verdict(fmean(scores))
    faults = Counter(verdict.fault for verdict in verdicts if verdict.fault)
    return Verdict(None, faults.most_common(1)[0][0])


def _run(loop: asyncio.AbstractEventLoop) -> None:
    with closing(loop):
        loop.run_forever()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _timed_out(error: BaseException | None) -> bool:
    """Return whether an error is a timeout or was caused by one."""
    return error is not None and (isinstance(error, TimeoutError) or _timed_out(error.__cause__))


def _in_words(error: Exception) -> str:
    return one_line(str(error) or type(error).__name__)[:300]


APPROACH = (
    "Only the approach counts: whether the method of the reply, carried out without slips, would answer the "
    "question. Give 1 for a valid method even where arithmetic or the final answer is wrong, 0 for a method "
    "that cannot work, for a guess, and for a reply without any reasoning, and a value between for a method "
    "with a gap."
)
CAUSES = MappingProxyType(
    {
        "misread": "it answers another question: a number, unit or condition of the problem is taken wrongly",
        "arithmetic": "the method is right, and a calculation or an algebraic step is wrong",
        "method": "the method cannot give the answer, or leaves a case out",
        "incoherent": "it goes in circles, contradicts itself or is not about the problem",
        "cut_off": "it ends before it reaches an answer",
        "extraction": "the right answer is there, in another form or place than it is looked for",
        "other": "none of these",
    }
)
"""The labels for why a solution is wrong, each with its meaning."""
QUESTION = "The reply was graded wrong. What is the first thing that makes it so?"


def approach(model: VerifierModel, problem: Problem, solution: str) -> Future[Verdict]:
    """Start to score whether a solution's approach is valid, whatever its answer is."""
    return model.score(problem, solution, rubric=APPROACH, fixed=True)


def cause(model: VerifierModel, reply: WrongReply) -> Future[Stated]:
    """Start to ask why a solution is wrong, unless the rules know the cause."""
    known = cause_of(reply).name
    if known != "not_known":
        ready: Future[Stated] = Future()
        ready.set_result(Stated(known))
        return ready
    return model.label(reply.problem, reply.solution, question=QUESTION, labels=CAUSES)
