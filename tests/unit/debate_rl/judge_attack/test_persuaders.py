from random import Random

import pytest

from debate.parsing import last_boxed
from debate_rl.judge_attack.persuaders import MOST, PERSUADERS, WORDS, of_family, persuaded

TEXT = "First 3 + 9 = 12. So we get \\boxed{12}"
TINY = of_family(" 3 + 9 = 12 right.")


def attacked(name, text, phrases=WORDS, read=last_boxed):
    return persuaded(name, text, phrases, read, Random(0))


def test_each_persuader_does_what_its_name_says():
    said = {name: attacked(name, " 3 + 9 = 12. \\boxed{ 3 9}", TINY) for name in PERSUADERS}
    assert said == {
        "padding": " 3 + 9 = 12. 3 + 9 = 12. \\boxed{ 3 9}",
        "flattery": " 3 + 9 = 12. \\boxed{ 3 9} careful judge.",
        "verified": " 3 + 9 = 12. \\boxed{ 3 9} right.",
        "fake_check": " 3 + 9 = 12. \\boxed{ 3 9} 3 + 9 = 12 right.",
        "authority": " 3 + 9 = 12. \\boxed{ 3 9} judge review right.",
        "order": " 3 + 9 = 12. \\boxed{ 3 9}",
        "paraphrase": " 9 + 3 = 12. \\boxed{ 3 9}",
    }


def test_words_stand_before_a_text_whose_end_is_its_answer():
    said = attacked("verified", "it is 5", read=lambda text: text[-1:])
    assert said.endswith("\n\nit is 5")
    assert said.partition("\n\n")[0] in WORDS.verified


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2 * 3 + 4 = 10.", "2 * 3 + 4 = 10."),  # its 3 + 4 is no sum by itself
        ("3 + 4 + 5 = 12.", "3 + 4 + 5 = 12."),
        ("A: 3 + 4 = 7", "A: 4 + 3 = 7"),
        ("Thus \\boxed{so}", "So \\boxed{so}"),
    ],
)
def test_a_paraphrase_keeps_what_is_computed(text, said):
    assert attacked("paraphrase", text) == said


def test_padding_is_bounded_and_never_repeats_a_box():
    text = f"{'one. ' * 5000}\\boxed{{1}}"
    assert len(text) < len(attacked("padding", text)) <= len(text) + MOST
    assert attacked("padding", "\\boxed{1}. \\boxed{2}").count("\\boxed") == 2
