"""read(write(record)) == record, for every debate the types allow and any text a model can write."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.config import DebateConfig
from debate.personas import Persona
from debate.types import (
    Ballot,
    Completion,
    Debate,
    FailureReason,
    ParsedTurn,
    ParseFailure,
    Problem,
    Span,
    Summary,
    Turn,
    TurnId,
    Vote,
)
from rewards import Rewards
from transcripts import Record, TurnAdvantages, read_records, write_step
from transcripts.codec import pack, to_line, unpack, without_tokens
from transcripts.errors import FieldError
from transcripts.store import seal_shard

# Any character, NUL too. Halves of characters (lone surrogates) are cleaned where a reply comes in.
CHARACTERS = st.characters(exclude_categories=["Cs"]) | st.sampled_from('\0\n\r\u2028<>&\\"')
TEXT = st.text(CHARACTERS, max_size=12)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NATURALS = st.integers(0, 10**6)
BIG = st.integers(0, 2**63 - 1)
MAYBE = st.none() | FLOATS
OUTCOMES = st.sampled_from(["left", "right", "tie"])
IDS = st.builds(TurnId, NATURALS, NATURALS)
SPANS = st.builds(Span, NATURALS, NATURALS)


def tuples(of: st.SearchStrategy, size: int = 3) -> st.SearchStrategy:
    return st.lists(of, max_size=size).map(tuple)


PROBLEMS = st.builds(
    Problem,
    id=TEXT,
    question=TEXT,
    answer=st.none() | TEXT,
    source=TEXT,
    level=TEXT,
    kind=st.sampled_from(["number", "expression", "choice", "open"]),
    choices=tuples(TEXT),
)
TEMPERATURES = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
PERSONAS = st.builds(Persona, TEXT, TEXT, TEMPERATURES)
COMPLETIONS = st.builds(
    Completion,
    prompt_tokens=tuples(BIG, 6),
    tokens=tuples(BIG, 6),
    logprobs=tuples(FLOATS, 6),
    text=TEXT,
    stop_reason=st.sampled_from(["stop", "length"]),
    policy_version=NATURALS,
    offsets=tuples(NATURALS, 6),
    forced=tuples(NATURALS, 6),
    prompt_count=st.none() | NATURALS,
    token_count=st.none() | NATURALS,
)
FAILURES = st.builds(ParseFailure, st.sampled_from(list(FailureReason)), TEXT, st.none() | SPANS)
PARSED = st.builds(
    ParsedTurn,
    solution=st.none() | SPANS,
    evaluation=st.none() | SPANS,
    comparison=st.none() | SPANS,
    answer=st.none() | TEXT,
    ballots=tuples(st.builds(Ballot, TEXT, TEXT, OUTCOMES, SPANS)),
    failures=tuples(FAILURES),
    thinking=st.none() | SPANS,
    comparison_block=st.none() | SPANS,
)
TURNS = st.builds(Turn, IDS, TEXT, tuples(IDS), COMPLETIONS, PARSED, tuples(IDS), NATURALS)
CONFIG_TEXT = st.text(max_size=6)  # settings are Unicode: pydantic refuses anything else
CONFIGS = st.builds(
    DebateConfig,
    num_agents=st.integers(1, 7),
    num_rounds=st.integers(1, 4),
    final_ballot=st.booleans(),
    history_rounds=st.integers(-1, 4),
    personas=st.sampled_from([None, "default", "wide"])
    | st.lists(st.builds(Persona, CONFIG_TEXT, CONFIG_TEXT, TEMPERATURES), min_size=1, max_size=2).map(tuple),
    judge_own=st.booleans(),
    order=st.sampled_from(["per_debate", "per_viewer"]),
    max_tokens=st.integers(1, 10**6),
    context_tokens=st.none() | st.integers(1, 10**6),
    stop=tuples(CONFIG_TEXT.filter(bool)),
)
DEBATES = st.builds(
    Debate,
    PROBLEMS,
    tuples(PERSONAS),
    tuples(TURNS, 2),
    tuples(st.builds(Vote, IDS, IDS, IDS, OUTCOMES, st.none() | SPANS)),
    BIG,
    NATURALS,
    CONFIGS,
    tuples(st.builds(Summary, NATURALS, tuples(IDS), COMPLETIONS, TEXT, NATURALS), 2),
)
SCORES = tuples(tuples(MAYBE))
REWARDS = st.builds(Rewards, SCORES, SCORES, SCORES, SCORES, tuples(st.tuples(TEXT, NATURALS)))
RECORDS = st.builds(
    Record,
    debate=DEBATES,
    step=st.just(12),
    group=TEXT,
    correct=st.none() | tuples(tuples(st.sampled_from([True, False, None, "missing"]))),
    rewards=st.none() | REWARDS,
    advantages=tuples(st.builds(TurnAdvantages, IDS, MAYBE, MAYBE, MAYBE, MAYBE, MAYBE)),
)


@settings(max_examples=30)
@given(st.lists(RECORDS, max_size=2))
def test_what_is_read_is_what_was_written(records: list[Record]):
    with tempfile.TemporaryDirectory() as folder:
        path = write_step(Path(folder), 12, records)
        assert list(read_records(path)) == records
        assert list(read_records(path, tokens=False)) == [without_tokens(one) for one in records]
        assert list(read_records(seal_shard(path))) == records


@settings(max_examples=30)
@given(RECORDS, st.data())
def test_a_tail_torn_anywhere_costs_that_record_only(record: Record, data: st.DataObject):
    with tempfile.TemporaryDirectory() as folder:
        path = write_step(Path(folder), 12, [record, record])
        whole = path.read_bytes()
        first = whole.index(b"\n") + 1
        cut = data.draw(st.integers(first, len(whole)))
        path.write_bytes(whole[:cut])
        torn: list[str] = []
        kept = 1 + (cut >= len(whole) - 1)  # a line that lacks nothing but its newline is whole
        assert list(read_records(path, on_torn=torn.append)) == [record] * kept
        assert len(torn) == (0 if kept == 2 or cut == first else 1)
        write_step(Path(folder), 12, [record])  # the writer mends the tail before it appends
        assert list(read_records(path)) == [record] * (kept + 1)


HALVES = st.characters(categories=["Cs"])


@given(st.text(CHARACTERS | HALVES, max_size=12))
def test_halves_of_characters_are_cleaned_without_moving_a_place(text: str):
    said = Completion((), (), (), text, "stop", 0).whole().text
    assert len(said) == len(text)
    assert said.encode().decode() == said
    pairs = zip(said, text, strict=True)
    assert all(new == old or (new == "\ufffd" and "\ud800" <= old <= "\udfff") for new, old in pairs)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_log_probabilities_are_kept_to_the_bit(values: list[float]):
    assert [x.hex() for x in unpack(pack(values, real=True))] == [x.hex() for x in values]


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 70_000)))
def test_token_ids_are_kept(values: list[int]):
    assert unpack(pack(values, real=False)) == values


@settings(max_examples=20)
@given(RECORDS, TEXT, HALVES)
def test_half_a_character_is_refused_by_its_field(record: Record, text: str, half: str):
    with pytest.raises(FieldError, match=r"^group: contains half a character \(a lone surrogate\)$"):
        to_line(replace(record, group=text + half))
