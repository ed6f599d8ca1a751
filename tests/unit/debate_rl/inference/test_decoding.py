"""Token ids to text and offsets, for real tokenizers and for ids no sane model would write."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from debate_rl.inference.decoding import TokenText, characters

TEXTS = [
    "Tom has 12 apples.",
    "é e\u0301 日本語 👩‍🔬😀🇫🇷!",
    " lead",
    "<think>x</think><|im_start|>y",
    "\n\n a  b",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_what_the_tokenizer_decodes(trained_tokenizer, text):
    ids = trained_tokenizer.encode(text, add_special_tokens=False)
    got, offsets = TokenText(trained_tokenizer).text_and_offsets(ids)
    assert got == trained_tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    assert len(offsets) == len(ids)
    assert list(offsets) == sorted(offsets)


@settings(max_examples=300, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_random_ids_decode_as_the_tokenizer_says(trained_tokenizer, data):
    ids = data.draw(st.lists(st.integers(0, len(trained_tokenizer) + 3), max_size=24))
    reader = TokenText(trained_tokenizer)
    text, offsets = reader.text_and_offsets(ids)
    assert text == trained_tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    assert list(offsets) == sorted(offsets)
    assert all(0 <= offset <= len(text) for offset in offsets)
    # Without the fallback: the sum of the pieces is the text.
    assert characters(reader._joined_pieces(ids))[0] == text


@settings(max_examples=300, deadline=None)
@given(chunks=st.lists(st.binary(max_size=4), max_size=16))
@example(chunks=[b"\xed", b"\xa0"])
@example(chunks=[b"\xed\xa0", b"a"])
@example(chunks=[b"\xed", b"\xa0", b""])
@example(chunks=[b"a\xed", b"\xa0", b"\x80", b"b"])
def test_characters_against_the_prefixes(chunks):
    text, offsets = characters(chunks)
    whole = b"".join(chunks)
    assert text == whole.decode("utf-8", "replace")
    assert offsets == sorted(offsets)
    starts, position = [], 0  # the first byte of each character, by decoding one more byte at a time
    for index in range(len(text)):
        starts.append(position)
        position = next(
            end
            for end in range(position + 1, len(whole) + 1)
            if whole[end:].decode("utf-8", "replace") == text[index + 1 :]
            and whole[position:end].decode("utf-8", "replace") == text[index]
        )
    byte = 0
    for chunk, offset in zip(chunks, offsets, strict=True):
        if chunk:
            assert offset == sum(start <= byte for start in starts) - 1
        byte += len(chunk)


def test_cut_characters_by_hand(make_tiny):
    _, tokenizer = make_tiny(["ab"])
    ids = tokenizer.encode("ab€x", add_special_tokens=False)  # ab, three bytes, x
    reader = TokenText(tokenizer)
    assert reader.text_and_offsets(ids) == ("ab€x", (0, 2, 2, 2, 3))
    assert reader.text_and_offsets(ids[:2]) == ("ab\ufffd", (0, 2))
    assert reader.text_and_offsets([ids[0], ids[1], ids[4]]) == ("ab\ufffdx", (0, 2, 3))
    assert reader.text_and_offsets([]) == ("", ())


def test_a_space_belongs_to_the_token_that_writes_it(trained_tokenizer):
    ids = trained_tokenizer.encode("Tom has 12 apples", add_special_tokens=False)
    text, offsets = TokenText(trained_tokenizer).text_and_offsets(ids)
    ends = [*offsets[1:], len(text)]
    assert "".join(text[a:b] for a, b in zip(offsets, ends, strict=True)) == text
    later = zip(offsets[1:], ends[1:], strict=True)  # the first may be a bare space, dropped
    assert all(b > a for a, b in later)


def test_a_decoder_that_rewrites_across_tokens_still_gets_bounded_offsets():
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.WordLevel({"<unk>": 0, "a</w>": 1, "b</w>": 2, "c": 3}, unk_token="<unk>"))
    backend.decoder = decoders.BPEDecoder("</w>")
    reader = TokenText(PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>"))
    text, offsets = reader.text_and_offsets([1, 3, 2, 1])
    assert text == "a cb a"
    assert offsets == (0, 1, 3, 4)


def test_offsets_are_linear_time(make_tiny):
    _, tokenizer = make_tiny()
    byte = tokenizer.convert_tokens_to_ids("â")  # 0xE2, the beginning of a character that never ends
    text, offsets = TokenText(tokenizer).text_and_offsets([byte] * 100_000)
    assert text == "\ufffd" * 100_000
    assert offsets == tuple(range(100_000))
