import pytest
from msgspec.structs import replace

from debate.parsing import parse_turn
from debate.types import Completion, Turn, TurnId
from learner import token_streams
from learner.advantages import Author

FULL = (
    "Let me see. <solution>3 + 4 = 7, π ≈ 3.14 🙂 \\boxed{7}</solution>\n"
    "<evaluation>K7: naïve but right.</evaluation><comparison>K7 > Q2\nM4 = Q2 ✓</comparison>"
)
PAIR = (TurnId(1, 0), TurnId(2, 0))
SOLVE_ONLY = "<solution>3 + 4 = \\boxed{7}</solution>"


def turn_of(
    text: str, offsets: tuple[int, ...], *, ballot: bool = False, compared: tuple[TurnId, ...] = PAIR
) -> Turn:
    parsed = parse_turn(text, handles=("K7", "Q2", "M4"), own="A1", due=True)
    count = len(offsets)
    completion = Completion((1, 2), tuple(range(count)), (-1.0,) * count, text, "stop", 0, offsets)
    return Turn(TurnId(0, 1), "A1", (), completion, parsed, compared, ballot=ballot)


def by_character(
    text: str, *, evaluation: Author = "generator", ballot: bool = False, compared: tuple[TurnId, ...] = PAIR
) -> list[int]:
    """One token for each character, and the end token."""
    turn = turn_of(text, tuple(range(len(text) + 1)), ballot=ballot, compared=compared)
    return token_streams(turn, evaluation=evaluation).tolist()


@pytest.mark.parametrize(("evaluation", "stream"), [("generator", 1), ("judge", 2), ("both", 3)])
def test_an_evaluation_belongs_to_whom_it_is_said_to_with_its_tags(evaluation, stream):
    start, end = FULL.index("<evaluation>"), FULL.index("<comparison>")
    wanted = [1] * start + [stream] * (end - start) + [2] * (len(FULL) - end + 1)
    assert by_character(FULL, evaluation=evaluation) == wanted


@pytest.mark.parametrize("compared", [(), PAIR[:1]])
def test_an_evaluation_is_the_generators_where_no_comparison_was_due(compared):
    """Whatever a reply compares: nothing rewards it."""
    assert by_character(FULL, evaluation="judge", compared=compared) == by_character(FULL)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("<solution>7</solution> So: <evaluation>fine</evaluation> hence", 27),
        ("<solution>7</solution><evaluation>fi", 22),
        ("<solution>7</solution>< Evaluation >fine", 22),
        ("&lt;solution&gt;7&lt;/solution&gt;&lt;evaluation&gt;fine", 34),
        ("so <evaluation>fine</evaluation>", 3),
    ],
)
def test_an_evaluation_without_its_comparison_goes_on_to_the_end(text, before):
    assert by_character(text, evaluation="judge") == [1] * before + [2] * (len(text) - before + 1)


@pytest.mark.parametrize(
    "text",
    [
        "<evaluation>fine</evaluation><solution>7</solution><comparison>K7 > Q2</comparison>",
        "<solution>7</solution><comparison>K7 > Q2</comparison><evaluation>fine</evaluation>",
        "<solution>7 <evaluation>fine</evaluation></solution><comparison>K7 > Q2</comparison>",
    ],
)
def test_an_evaluation_in_another_place_prepares_no_vote_and_is_the_generators(text):
    assert by_character(text, evaluation="judge") == by_character(text)


BLOCK = "<comparison>K7 > Q2</comparison>"


@pytest.mark.parametrize(
    "parts",
    [
        [(1, FULL[: FULL.index("<comparison>")]), (2, FULL[FULL.index("<comparison>") :])],
        [(1, SOLVE_ONLY)],
        [(1, "no section at all")],
        [(1, "I think so. "), (2, BLOCK)],
        [(1, "<solution>7</solution>"), (2, BLOCK + " Done.")],  # what follows belongs to the last section
        [(1, "<solution>7</solution> Done.")],
        [(2, BLOCK), (1, " so <solution>7</solution> Done.")],
        [(1, "<solution>7</solution>"), (2, "<comparison>K7 > Q")],
        [(1, f"<think>{BLOCK}</think><solution>7</solution>")],
    ],
)
def test_the_comparison_block_with_its_tags_is_the_judges_and_the_rest_the_generators(parts):
    """The end token belongs to the last section."""
    wanted = [stream for stream, text in parts for _ in text]
    assert by_character("".join(text for _, text in parts)) == [*wanted, parts[-1][0]]


def test_every_token_of_a_ballot_is_the_judges():
    assert set(by_character(f"<evaluation>fine</evaluation>{BLOCK}", ballot=True)) == {2}


def test_a_token_across_a_boundary_goes_where_its_first_character_lies():
    text = "<solution>7</solution>\n<comparison>K7 > Q2</comparison>"
    # "<solution>7</solution" | ">\n<comp" | "arison>K7 > Q2</comparison>" | end
    assert token_streams(turn_of(text, (0, 21, 28, len(text))), evaluation="judge").tolist() == [1, 1, 2, 2]
    # the same text cut just before "<comparison>"
    assert token_streams(turn_of(text, (0, 23, len(text))), evaluation="judge").tolist() == [1, 2, 2]


@pytest.mark.parametrize("end", [0, 1])
def test_without_offsets_one_token_a_character_is_understood(end):
    text = "<solution>4</solution><comparison>K7 > Q2</comparison>"
    tokens = tuple(range(len(text) + end))
    completion = Completion((1,), tokens, (-1.0,) * len(tokens), text, "stop", 0)
    parsed = parse_turn(text, handles=("K7", "Q2", "M4"), own="M4", due=True)
    turn = Turn(TurnId(0, 1), "M4", (), completion, parsed)

    assert token_streams(turn, evaluation="judge").tolist() == [1] * 22 + [2] * (32 + end)


@pytest.mark.parametrize("text", [FULL, SOLVE_ONLY, FULL + " 🙂 and on"])
def test_all_kinds_of_tokenizers_agree_with_the_characters(trained_tokenizer, text):
    """Their tokens straddle the borders of sections, and bytes cut characters."""
    encoding = trained_tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
    offsets = (*(start for start, _ in encoding.offsets), len(text))
    wanted = by_character(text, evaluation="judge")
    assert token_streams(turn_of(text, offsets), evaluation="judge").tolist() == [
        wanted[offset] for offset in offsets
    ]


@pytest.mark.parametrize(
    ("text", "critic"),
    [
        ("so <evaluation><target>K7</target>no</evaluation><comparison>K7 > Q2</comparison>", (3, 49)),
        ("<evaluation><target>K7</target>no", (0, 34)),
        ("<comparison>K7 > Q2</comparison>", (0, 0)),
        ("nothing", (0, 0)),
    ],
)
@pytest.mark.parametrize("compared", [PAIR, ()])
@pytest.mark.parametrize("evaluation", ["generator", "judge"])
def test_criticism_is_the_critics_and_the_rest_of_its_turn_the_judges(text, critic, compared, evaluation):
    turn = turn_of(text, tuple(range(len(text) + 1)), ballot=True, compared=compared)
    turn = replace(turn, parsed=replace(turn.parsed, criticisms=()))
    start, end = critic
    wanted = [2] * start + [4] * (end - start) + [2] * (len(text) + 1 - end)
    assert token_streams(turn, evaluation=evaluation).tolist() == wanted
