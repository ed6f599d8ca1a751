"""Laws of where a text has the output of its programs."""

from hypothesis import given
from hypothesis import strategies as st

from debate.programs import output_spans

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
