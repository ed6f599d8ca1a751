"""The instructions of IFBench on words, sentences, counts and shares [Pyatkin et al. 2025, arXiv 2507.02833].

From a response and the instruction's arguments, under their published names, to whether it is followed. What
the published checkers decide, with three differences: words are counted without punctuation and sentences are
those of ``envs.instructions.text`` (there: tokens and sentences of nltk), a verb is one of a list (there: the
tag of a model), and syllables are counted by rule (there: a dictionary first). Every check is linear in the
response and raises on none. Those on form and on single questions are in ``ifbench_forms``.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from string import ascii_lowercase, punctuation

from envs.instructions.arguments import Types, count, keyword, ordinal, phrase
from envs.instructions.lexicon import CONJUNCTIONS, NAMES, PRONOUNS, STOP_WORDS, is_verb, syllables
from envs.instructions.text import bare_words, count_words, sentences, words

_ENDS = punctuation + " "
_CLOSING = "\"')]}”’*_"
_RUN = re.compile(r"\w+")
_DIGITS = re.compile(r"\d+")
_JAPANESE = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
_CLUSTER = re.compile("[bcdfghjklmnpqrstvwxyz]{2}")
_INTERROBANGS = ("?!", "!?", "‽")
_PRIMES = frozenset(
    (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
)
_TIMES = (1, 2, 3, 5, 7)
_TRIGRAM = 3
_TOLERANCE = 2
_LETTERS = len(ascii_lowercase)


def word_count_range(response: str, *, min_words: int, max_words: int) -> bool:
    """It has so many words: runs of letters, digits and underscores."""
    return min_words <= count_words(response) <= max_words


def unique_word_count(response: str, *, N: int) -> bool:
    """It has at least so many different words; case and punctuation at their ends are ignored."""
    return len({word.strip(_ENDS) for word in response.lower().split()}) >= N


def stop_words(response: str, *, percentage: float) -> bool:
    """At most this percentage of its words are stop words."""
    tokens = _RUN.findall(response.lower())
    stopped = sum(token in STOP_WORDS for token in tokens)
    return bool(tokens) and 100 * stopped <= percentage * len(tokens)


def _ending_in(response: str, marks: str) -> list[int]:
    ends = Counter(sentence.rstrip(_CLOSING)[-1:] for sentence in sentences(response))
    return [ends[mark] for mark in marks]


def sentence_type(response: str) -> bool:
    """It has two sentences that end in a point for each that ends in a question mark."""
    declarative, interrogative = _ending_in(response, ".?")
    return declarative == 2 * interrogative


def sentence_balance(response: str) -> bool:
    """It has as many sentences that end in a point as in a question mark and in an exclamation mark."""
    return len(set(_ending_in(response, ".?!"))) == 1


def conjunctions(response: str, *, small_n: int) -> bool:
    """It has at least so many different coordinating conjunctions; each spelling counts as one more."""
    found = {word for word in response.split() if word.strip(_ENDS).lower() in CONJUNCTIONS}
    return len(found) >= small_n


def person_names(response: str, *, N: int) -> bool:
    """It has at least so many different names of the prompt's list, each as a word of its own."""
    return len(set(_RUN.findall(response)) & set(NAMES)) >= N


def pronouns(response: str, *, N: int) -> bool:
    """It has at least so many pronouns; "she/her" are two, and so is the "I" of "I'm" one."""
    tokens = (
        token for word in words(response.lower().replace("/", " ")) for token in re.split("['’]", word)[:1]
    )
    return sum(token in PRONOUNS for token in tokens) >= N


def trigram_overlap(response: str, *, reference_text: str, percentage: float) -> bool:
    """Of its different runs of three characters this percentage, within 2, is also in the reference."""
    own, others = _trigrams(response), _trigrams(reference_text)
    return bool(own) and abs(100 * len(own & others) / len(own) - percentage) <= _TOLERANCE


def _trigrams(text: str) -> set[str]:
    return {text[start : start + _TRIGRAM] for start in range(len(text) - _TRIGRAM + 1)}


def numbers(response: str, *, N: int) -> bool:
    """It has exactly so many numbers; "3.5" and "1,000" are one each."""
    return len(_DIGITS.findall(" ".join(bare_words(response)))) == N


def punctuation_marks(response: str) -> bool:
    """It has a point, comma, semicolon, colon, exclamation and question mark, and an interrobang beside."""
    used = next((mark for mark in _INTERROBANGS if mark in response), None)
    return used is not None and set(".,!?;:") <= set(response.replace(used, "", 1))


def words_japanese(response: str, *, N: int) -> bool:
    """Every N-th word has a Japanese character, but for numbers and for lone punctuation."""
    due = (word.strip(_ENDS) for word in response.split()[N - 1 :: N])
    return all(_JAPANESE.search(word) for word in due if word and not word.isdigit())


def keywords_multiple(response: str, **keywords: str) -> bool:
    """The five keywords stand in it once, twice, three, five and seven times, also inside words."""
    text = response.lower()
    return all(
        text.count(keywords[f"keyword{i}"].strip().lower()) == n for i, n in enumerate(_TIMES, start=1)
    )


def alphabet(response: str) -> bool:
    """Each word starts with the next letter of the alphabet, "a" behind "z"; the first is any letter."""
    firsts = [ascii_lowercase.find(word[0].lower()) for word in bare_words(response)]
    start = firsts[0] if firsts else -1
    return start >= 0 and all(first == (start + i) % _LETTERS for i, first in enumerate(firsts))


def vowel(response: str) -> bool:
    """It is one paragraph with at most three of the five vowels."""
    return "\n" not in response.strip() and len(set(response.lower()) & set("aeiou")) <= 3


def consonants(response: str) -> bool:
    """Each word has two consonants in a row."""
    return all(map(_CLUSTER.search, response.lower().split()))


def palindrome(response: str) -> bool:
    """It has at least ten words of five letters or more that read the same backwards."""
    return sum(len(word) >= 5 and word == word[::-1] for word in bare_words(response.lower())) >= 10


def prime_lengths(response: str) -> bool:
    """The length of each word is a prime number below 100."""
    return all(len(word) in _PRIMES for word in bare_words(response))


def repeats(response: str, *, small_n: int) -> bool:
    """No word stands in it more often than this; case is ignored."""
    return max(Counter(bare_words(response.lower())).values(), default=0) <= small_n


def no_consecutive(response: str) -> bool:
    """No two words in a row start with the same letter; case is ignored."""
    return all(one[0] != two[0] for one, two in pairwise(bare_words(response.lower())))


def odd_even_syllables(response: str) -> bool:
    """Words with an odd and with an even number of syllables take turns."""
    parities = [syllables(word) % 2 for word in bare_words(response)]
    return all(one != two for one, two in pairwise(parities))


def start_verb(response: str) -> bool:
    """Its first word is a verb, of a list of common ones in all their forms."""
    return is_verb(next(iter(words(response)), ""))


def last_first(response: str) -> bool:
    """The last word of each sentence is the first of the next; case is ignored."""
    spoken = [words(sentence.lower()) for sentence in sentences(response)]
    return all(one and two and one[-1] == two[0] for one, two in pairwise(spoken))


def paragraph_last_first(response: str) -> bool:
    """Each line ends with the word that it starts with; case and punctuation around the line are ignored."""
    lines = [line.strip(_ENDS).split() for line in response.lower().split("\n")]
    return all(line[0] == line[-1] for line in lines if line)


def keywords_specific_position(response: str, *, keyword: str, n: int, m: int) -> bool:
    """The m-th word of the n-th sentence is the keyword; case is ignored."""
    spoken = sentences(response)
    at = words(spoken[n - 1]) if len(spoken) >= n else []
    return len(at) >= m and at[m - 1].lower() == keyword.strip().lower()


def words_position(response: str, *, keyword: str) -> bool:
    """The second and the last word but one are the keyword; case is ignored."""
    spoken = words(response.lower())
    return len(spoken) > 1 and spoken[1] == spoken[-2] == keyword.strip().lower()


def alliteration_increment(response: str) -> bool:
    """Each sentence has more words than the one before that stand beside one with their first letter."""
    counts = [_alliterative(sentence) for sentence in sentences(response)]
    return all(one < two for one, two in pairwise(counts))


def _alliterative(sentence: str) -> int:
    firsts = [word[0] for raw in sentence.lower().split() if (word := raw.lstrip(_ENDS))]
    same = [False, *(one == two for one, two in pairwise(firsts)), False]
    return sum(before or behind for before, behind in pairwise(same))


def sentence_increment(response: str, *, small_n: int) -> bool:
    """Each sentence has exactly so many words more than the one before."""
    lengths = [len(bare_words(sentence)) for sentence in sentences(response)]
    return all(two - one == small_n for one, two in pairwise(lengths))


def sentence_keyword(response: str, *, word: str, N: int) -> bool:
    """The N-th sentence has the word, as a word of its own; case is ignored."""
    spoken = sentences(response)
    apart = rf"(?<!\w){re.escape(word)}(?!\w)"
    return len(spoken) >= N and re.search(apart, spoken[N - 1], re.IGNORECASE) is not None


def sentence_words(response: str) -> bool:
    """It has three sentences of equal length in characters; that their words differ is not looked at."""
    spoken = sentences(response)
    return len(spoken) == 3 and len(set(map(len, spoken))) == 1


IFBENCH_WORDS: Types = {
    "count:word_count_range": (word_count_range, {"min_words": count, "max_words": count}),
    "count:unique_word_count": (unique_word_count, {"N": count}),
    "count:conjunctions": (conjunctions, {"small_n": count}),
    "count:person_names": (person_names, {"N": count}),
    "count:pronouns": (pronouns, {"N": count}),
    "count:numbers": (numbers, {"N": count}),
    "count:punctuation": (punctuation_marks, {}),
    "count:words_japanese": (words_japanese, {"N": ordinal}),
    "count:keywords_multiple": (keywords_multiple, {f"keyword{i}": keyword for i in range(1, 6)}),
    "ratio:stop_words": (stop_words, {"percentage": count}),
    "ratio:sentence_type": (sentence_type, {}),
    "ratio:sentence_balance": (sentence_balance, {}),
    "ratio:overlap": (trigram_overlap, {"reference_text": phrase, "percentage": count}),
    "ratio:sentence_words": (sentence_words, {}),
    "sentence:alliteration_increment": (alliteration_increment, {}),
    "sentence:increment": (sentence_increment, {"small_n": count}),
    "sentence:keyword": (sentence_keyword, {"word": keyword, "N": ordinal}),
    "words:alphabet": (alphabet, {}),
    "words:vowel": (vowel, {}),
    "words:consonants": (consonants, {}),
    "words:palindrome": (palindrome, {}),
    "words:prime_lengths": (prime_lengths, {}),
    "words:repeats": (repeats, {"small_n": count}),
    "words:no_consecutive": (no_consecutive, {}),
    "words:odd_even_syllables": (odd_even_syllables, {}),
    "words:start_verb": (start_verb, {}),
    "words:last_first": (last_first, {}),
    "words:paragraph_last_first": (paragraph_last_first, {}),
    "words:keywords_specific_position": (
        keywords_specific_position,
        {"keyword": keyword, "n": ordinal, "m": ordinal},
    ),
    "words:words_position": (words_position, {"keyword": keyword}),
}
"""The 30 on words, sentences, counts and shares; every argument must be given."""
