"""Whatever a program is or writes, it comes back as text, or as a clear status."""

import asyncio
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.sandbox.inside.guard import read_report
from envs.sandbox.inside.program import open_output, read_output

STATUSES = {"ok", "error", "timeout", "memory", "died"}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ask(box):
    """Return ask(program) -> the result of it, in one session for all."""
    with asyncio.Runner() as runner:
        held = box.session()
        session = runner.run(held.__aenter__())
        yield lambda program: runner.run(session.run(program))
        runner.run(held.__aexit__(None, None, None))


@given(written=st.binary(max_size=900))
def test_any_bytes_that_are_written_come_back_as_text(ask, written):
    ran = ask(f"import os; os.write(1, {written!r}); None")
    assert (ran.status, ran.output) == ("ok", written.decode("utf-8", "replace"))


@given(text=st.text(max_size=900))
def test_any_text_that_is_printed_comes_back(ask, text):
    ran = ask(f"print({text!a}, end='')")
    assert (ran.status, ran.output) == ("ok", text)


@settings(max_examples=50)
@given(program=st.one_of(st.text(max_size=200), st.text(string.punctuation + "\n\\ x1", max_size=200)))
def test_any_text_is_a_program_that_ends_somehow(ask, program):
    ran = ask(program)
    assert ran.status in STATUSES
    assert (ran.status == "ok") == (ran.error == "")
    assert ask("print('next')").output == "next\n"


@settings(max_examples=30)
@given(said=st.binary(max_size=300))
def test_whatever_is_said_in_the_runners_name_harms_nobody_else(ask, said):
    ran = ask(f"import os; os.write(3, {said!r}); None")
    assert ran.status in STATUSES
    again = [ask("print('next')") for _ in range(3)]
    assert {one.status for one in again} <= STATUSES


@given(said=st.binary(max_size=300))
def test_any_report_is_read(said):
    assert read_report(said).status in STATUSES


@given(written=st.binary(max_size=400), longest=st.integers(2, 60))
def test_output_is_cut_to_its_length_and_says_so(written, longest):
    with open(open_output(), "wb", buffering=0) as file:
        file.write(written)
        text, whole = read_output(file.fileno(), longest), written.decode("utf-8", "replace")
    if len(whole) <= longest and len(written) <= 8 * longest:
        assert text == whole
    else:
        head, said, tail = text[: longest // 2], text[longest // 2 : -(longest // 2)], text[-(longest // 2) :]
        assert whole.startswith(head)
        assert said.startswith("\n[")
        assert said.endswith("left out]\n")
        assert len(tail) == longest // 2
