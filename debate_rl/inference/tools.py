"""A policy whose replies may run programs: each program runs as soon as it is written.

Generation stops at the fence that closes a code block. If the block is a program, it runs, its output is
appended as forced tokens, and the model continues from exactly the tokens so far. All programs of a turn
share one session. Programs in a think block do not run.

Outputs count as tokens of the reply, so ``max_tokens`` and the context limit them too. An output takes at
most half of the remaining tokens, so that the model can always continue.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from debate.parsing.sections import find_sections
from debate.policy import hold_at, opens_thinking, speaker_at
from debate.programs import REFUSED, Program, find_program, output_block, shown_output
from debate.seeds import derive_seed
from debate.tools import FENCE
from debate.types import Call, CallStatus, Completion, Policy, SampleRequest, Span, StopReason
from debate_rl.inference.wrapped import WrappedPolicy
from debate_rl.inference.written import Written, written_by

if TYPE_CHECKING:
    from debate.tools import Programs, Session

MOST_FENCES = 32
"""After this many fences in a turn that close no program, programs no longer run."""


class ToolPolicy(WrappedPolicy):
    """The policy ``inner``, whose replies run at most ``calls`` programs in a turn, by ``programs``.

    Only agents' turns run programs; summaries and shortened solutions do not.
    """

    runs_programs = True
    unwrapped = True

    def __init__(self, inner: Policy, programs: Programs, *, calls: int = 4) -> None:
        super().__init__(inner)
        self.programs, self._calls = programs, calls

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request. ``Completion.calls`` has the programs of the reply."""
        if request.turn.agent < 0:
            return await self.inner.sample(request)
        reply = _Reply(self.inner, request)
        async with AsyncExitStack() as stack:
            session: Session | None = None
            while (program := await reply.next_program()) is not None:
                if len(reply.calls) >= self._calls:
                    reply.refuse(program, self._calls)
                    continue
                with hold_at(self.inner):
                    if session is None:
                        session = await stack.enter_async_context(self.programs.session())
                    ran = await session.run(program.source(reply.text))
                reply.answer(program, shown_output(ran), ran.status)
            with hold_at(self.inner):
                await stack.aclose()
        return reply.completion()


class _Reply:
    """An unfinished reply, with the programs that it has run."""

    def __init__(self, policy: Policy, request: SampleRequest) -> None:
        self._policy, self._request = policy, request
        self._speaker = speaker_at(policy, request.seat)
        self._in_thinking = opens_thinking(self._speaker, request.messages)
        self._looks, self._fences, self._pieces = True, 0, 0
        self._reason: StopReason = "stop"
        self._written: Written | None = None
        self.calls: list[Call] = []

    @property
    def text(self) -> str:
        """The text so far."""
        return self._written.text if self._written else ""

    async def next_program(self) -> Program | None:
        """Generate until a program is to run, and return it; None if the reply has ended."""
        while self._left() > 0:
            written = await self._go_on()
            program = self._program() if self._looks else None
            if program is not None and written.cost(output_block("")) < self._left():
                return program
            if program is None and not (self._reason == "stop" and written.at_fence(self._request.stop)):
                return None
            if program is not None:
                break
            self._fences += 1
            self._looks = self._looks and self._fences < MOST_FENCES
        self._reason = "length"
        return None

    def refuse(self, program: Program, most: int) -> None:
        """Append a notice that the turn may run no more programs. Further programs are plain text."""
        self.answer(program, REFUSED.format(most=f"{most} program{'s' * (most > 1)}"), "refused")
        self._looks = False

    def answer(self, program: Program, output: str, status: CallStatus) -> None:
        """Append the output of a program."""
        written, before = self._so_far, len(self.text)
        lead = "" if written.text.endswith("\n") else "\n"
        block = self._fitting(output)
        written.add(lead + block)
        whole = Span(before, len(written.text))
        inner = Span(before + len(lead) + block.index("\n") + 1, whole.end - len(FENCE))
        exact = whole.of(written.text) == lead + block  # not so where a tokenizer cannot write all of it
        span = Span(program.block.start, whole.end)
        self.calls.append(Call(span, program.code, inner if exact else whole, status))

    def completion(self) -> Completion:
        """Return the complete reply."""
        return self._so_far.completion(self._reason, tuple(self.calls))

    @property
    def _so_far(self) -> Written:
        assert self._written is not None, "nothing has been written yet"
        return self._written

    async def _go_on(self) -> Written:
        """Generate until a fence or the end of the reply."""
        piece = await self._policy.sample(self._next_request())
        self._pieces += 1
        if self._written is None:
            self._written = written_by(self._speaker, piece, self._request)
        self._written.take(piece)
        self._reason = piece.stop_reason
        return self._written

    def _next_request(self) -> SampleRequest:
        request = self._request
        stop = (*request.stop, FENCE) if self._looks else request.stop
        if self._written is None:
            return replace(request, stop=stop)
        return replace(
            request,
            max_tokens=self._left(),
            stop=stop,
            seed=derive_seed(request.seed, "piece", self._pieces),
            thinking_tokens=0,
            begun=self._written.begun(),
        )

    def _program(self) -> Program | None:
        """Return the program at the end of the text, if it has not run and is not in the thinking."""
        if self.calls:
            start = self.calls[-1].block.end
        else:
            thinking = find_sections(self.text, in_thinking=self._in_thinking).thinking
            start = thinking.end if thinking else 0
        while (program := find_program(self.text, start)) is not None:
            start = program.block.end
            if not self.text[start:].strip() or self._so_far.cut(start):
                return program
        return None

    def _left(self) -> int:
        """Return how many tokens remain."""
        return self._request.max_tokens if self._written is None else self._written.left()

    def _fitting(self, output: str) -> str:
        """Return the block of an output, cut to at most half of the remaining tokens."""
        written, most = self._so_far, self._left() // 2
        block = output_block(output)
        if written.cost(block) <= most:
            return block
        low, high, best = 0, len(output), output_block("")
        while low <= high:
            length = (low + high) // 2
            block = output_block(output, most=length)
            fits = written.cost(block) <= most
            best = block if fits else best
            low, high = (length + 1, high) if fits else (low, length - 1)
        return best
