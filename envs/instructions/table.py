"""The instructions by their published names: the check of each, and how its arguments are read."""

from __future__ import annotations

from types import MappingProxyType

from envs.instructions import checks
from envs.instructions.arguments import (
    Types,
    count,
    keyword,
    keywords,
    language,
    letter,
    ordinal,
    phrase,
    relation,
)
from envs.instructions.ifbench import IFBENCH_WORDS
from envs.instructions.ifbench_forms import IFBENCH_FORMS
from envs.instructions.open_instruct import OPEN_INSTRUCT
from envs.instructions.rlvr_ifeval import RLVR_IFEVAL

IFEVAL: Types = MappingProxyType(
    {
        "keywords:existence": (checks.keyword_existence, {"keywords": keywords}),
        "keywords:frequency": (
            checks.keyword_frequency,
            {"keyword": keyword, "frequency": count, "relation": relation},
        ),
        "keywords:forbidden_words": (checks.forbidden_words, {"forbidden_words": keywords}),
        "keywords:letter_frequency": (
            checks.letter_frequency,
            {"letter": letter, "let_frequency": count, "let_relation": relation},
        ),
        "language:response_language": (checks.response_language, {"language": language}),
        "length_constraints:number_sentences": (
            checks.number_sentences,
            {"num_sentences": count, "relation": relation},
        ),
        "length_constraints:number_paragraphs": (checks.number_paragraphs, {"num_paragraphs": count}),
        "length_constraints:number_words": (checks.number_words, {"num_words": count, "relation": relation}),
        "length_constraints:nth_paragraph_first_word": (
            checks.nth_paragraph_first_word,
            {"num_paragraphs": ordinal, "nth_paragraph": ordinal, "first_word": phrase},
        ),
        "detectable_content:number_placeholders": (checks.number_placeholders, {"num_placeholders": count}),
        "detectable_content:postscript": (checks.postscript, {"postscript_marker": phrase}),
        "detectable_format:number_bullet_lists": (checks.number_bullet_lists, {"num_bullets": count}),
        "detectable_format:constrained_response": (checks.constrained_response, {}),
        "detectable_format:number_highlighted_sections": (
            checks.number_highlighted_sections,
            {"num_highlights": count},
        ),
        "detectable_format:multiple_sections": (
            checks.multiple_sections,
            {"section_spliter": keyword, "num_sections": count},
        ),
        "detectable_format:json_format": (checks.json_format, {}),
        "detectable_format:title": (checks.title, {}),
        "combination:two_responses": (checks.two_responses, {}),
        "combination:repeat_prompt": (checks.repeat_prompt, {"prompt_to_repeat": phrase}),
        "startend:end_checker": (checks.end_checker, {"end_phrase": phrase}),
        "change_case:capital_word_frequency": (
            checks.capital_word_frequency,
            {"capital_frequency": count, "capital_relation": relation},
        ),
        "change_case:english_capital": (checks.english_capital, {}),
        "change_case:english_lowercase": (checks.english_lowercase, {}),
        "punctuation:no_comma": (checks.no_comma, {}),
        "startend:quotation": (checks.quotation, {}),
    }
)
"""Those of IFEval; every argument must be given: there are no defaults."""

TYPES: Types = MappingProxyType({**IFEVAL, **IFBENCH_WORDS, **IFBENCH_FORMS, **OPEN_INSTRUCT, **RLVR_IFEVAL})
"""Every instruction that is known: of IFEval, IFBench, Open-Instruct and RLVR-IFeval."""

DETECTED = frozenset(
    (
        "language:response_language",
        "change_case:english_capital",
        "change_case:english_lowercase",
        "validate_response_language",
    )
)
"""Those that need to detect the language."""
