import asyncio
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.policies.scripted import END_TOKEN, ScriptedPolicy
from debate.programs import find_program, output_block, output_spans, public_part
from debate.reply import read_reply
from debate.tools import Ran
from debate.types import Message, SampleRequest, Span, TurnId
from debate_rl.inference.tools import ToolPolicy
from envs.programs.harness import code_of

HANDLES = ("K7", "Q2", "M4")
REQUEST = SampleRequest((Message("user", "?"),), 1.0, 100_000, ("</never>",), 7, "d", TurnId(2, 1))
PROGRAM = "```python\nprint()\n```\n"
TEXT = st.text(max_size=20)
SAID = st.sampled_from([
    "<solution>", "</solution>", "<evaluation>", "</evaluation>", "<comparison>", "</comparison>",
    "<think>", "</think>", "\\boxed{7}", "\\boxed{", "}", "K7 > Q2", "Q2 = K7: both", "\n", "```\n",
    "```output\n", "```python\n", "```text\n", "&lt;solution&gt;", "<target>K7</target>", "so", "<", " ",
    "<|im_end|>", "[INST]", "\u202e", "\x00", "\r", "```", "</", "\ufeff",
])  # fmt: skip
PRINTED = st.lists(SAID | TEXT, max_size=12).map("".join)
MODEL = st.lists(SAID | st.just(PROGRAM), max_size=14).map("".join)


class Prints:
    """Programs of which each prints the next of these texts."""

    def __init__(self, printed):
        self.printed = iter(printed)

    def session(self):
        return self

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_): ...

    async def run(self, code):
        return Ran("ok", next(self.printed, ""))


def reply(text, printed, *, tokens=True):
    """Return what a model makes that writes this text, whatever its programs print."""
    written = 0

    def script(request):
        return text[written:]

    class Counting(ScriptedPolicy):
        async def sample(self, request):
            nonlocal written
            piece = await super().sample(request)
            written += len(piece.text)
            return piece

    policy = ToolPolicy(Counting(script, tokens=tokens), Prints(printed), calls=64)
    return asyncio.run(policy.sample(REQUEST))


def parts(completion):
    """Return what was read of a reply, with places as if nothing had been printed."""
    printed = [call.output for call in completion.calls]

    def place(index):
        return index - sum(min(index, span.end) - span.start for span in printed if span.start < index)

    def plain(value):
        if isinstance(value, Span):
            return place(value.start), place(value.end)
        if isinstance(value, tuple):
            return tuple(map(plain, value))
        fields = getattr(value, "__struct_fields__", None)
        return tuple(plain(getattr(value, name)) for name in fields) if fields else value

    read = read_reply(
        completion,
        handles=HANDLES,
        own="M4",
        due=True,
        in_thinking=False,
        ballot=False,
        kind="number",
        critic="M4",
    )
    failures = tuple(replace(one, detail="") for one in read.failures)
    return plain(replace(read, failures=failures))


@given(MODEL, st.lists(PRINTED, min_size=1, max_size=4))
@pytest.mark.slow
@settings(max_examples=300)
def test_whatever_is_printed_the_same_is_read(text, printed):
    silent, loud = reply(text, []), reply(text, printed)
    assert len(silent.calls) == len(loud.calls)
    assert parts(loud) == parts(silent)


@given(MODEL, st.lists(PRINTED, min_size=1, max_size=4))
@settings(max_examples=20)
def test_what_was_sampled_is_kept_and_all_else_is_forced(text, printed):
    made = reply(text, printed)
    assert len(made.tokens) == len(made.logprobs) == len(made.offsets)
    forced = {*made.forced}
    own = [token for index, token in enumerate(made.tokens) if index not in forced]
    assert own[-1] == END_TOKEN
    assert text == "".join(map(chr, own[:-1]))
    blocks = "".join(chr(made.tokens[index]) for index in made.forced)
    assert blocks.count("```output\n") == len(made.calls)


@given(PRINTED, PRINTED)
@settings(max_examples=20)
def test_others_read_every_output_that_nothing_printed_as_a_claim(text, printed):
    made = reply(text + "\n" + PROGRAM + "done", [printed])
    public = public_part(made.text, Span(0, len(made.text)), made.calls)
    shown = len(re.findall(r"`{3,}[ \t]*output", public, re.IGNORECASE))
    assert shown == len(made.calls) or (shown < len(made.calls) and "<" in text)  # what is private is cut


@given(PRINTED)
@settings(max_examples=50)
def test_an_output_closes_no_block_and_opens_none(printed):
    block = output_block(printed)
    assert block.startswith("```output\n")
    assert block.endswith("```\n")
    assert block.count("```") == 2
    assert find_program(PROGRAM + block, len(PROGRAM)) is None
    assert not re.search(r"</?(solution|evaluation|comparison|think|target)\b", block)


def test_what_is_private_within_a_label_makes_no_output():
    for label in ("``<think>so</think>`output", "```<comparison>K7</comparison>output", "```\u2003output"):
        text = f"{label}\n4\n```\n"
        assert "claimed output" in public_part(text, Span(0, len(text)), ()), label


def test_a_program_that_is_the_answer_is_read_without_what_it_printed():
    program = "```python\ndef f(x):\n    return x\n```\n"
    made = reply(f"<solution>So:\n{program}Done.</solution>", ["```python\nforged"])
    asked = {"handles": HANDLES, "own": None, "due": False, "in_thinking": False, "ballot": False}
    answer = read_reply(made, **asked, kind="code").answer
    assert len(made.calls) == 1
    assert "forged" not in answer
    assert code_of(answer) == "def f(x):\n    return x\n"


LINES = st.sampled_from(["```python", "```output", "```", "```text", "x = 1", "", " ```", "```output x"])
texts = st.lists(LINES, max_size=14).map("\n".join)
plain = st.text(alphabet="ab \n1=()", max_size=30)


@given(st.one_of(texts, st.text(max_size=60)))
def test_spans_are_in_order_apart_and_begin_at_an_output_fence(text):
    spans = output_spans(text)
    ends = [0, *(span.end for span in spans)]
    for before, span in zip(ends, spans, strict=False):
        assert before <= span.start < span.end <= len(text)
        assert span.of(text).startswith("```")
        assert span.of(text).splitlines()[0].strip("` \t") == "output"


@given(st.lists(st.tuples(plain, plain, plain), max_size=4))
def test_each_program_and_its_output_is_found_whatever_they_say(parts):
    """(text before, program, output) of each: what the tools append is found, and nothing else."""
    text, expected = "", []
    for before, program, output in parts:
        text += f"{before}\n```python\n{program}\n```\n"
        block = f"```output\n{output}\n```\n"
        expected.append((len(text), len(text) + len(block)))
        text += block
    assert [tuple(span) for span in output_spans(text)] == expected
    assert output_spans(text.replace("```python", "```ruby")) == ()
