"""The data sets by name: one entry each, with where it is and where its fields are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from envs.data import code_sets, golds, kinds, options, rl_sets, texts
from envs.data.data_set import (
    DataSet,
    arc_question,
    body_and_question,
    gpqa_question,
    hardest,
    numerical_only,
    prompt,
    with_context,
)

MATH_SUBJECTS = (
    "algebra",
    "counting_and_probability",
    "geometry",
    "intermediate_algebra",
    "number_theory",
    "prealgebra",
    "precalculus",
)
MMLU_MATH_SUBJECTS = (
    "abstract_algebra",
    "college_mathematics",
    "elementary_mathematics",
    "high_school_mathematics",
)
ONLY_TRAIN = MappingProxyType({"train": "train"})
TRAIN_TEST = MappingProxyType({"train": "train", "test": "test"})
THREE_SPLITS = MappingProxyType({"train": "train", "validation": "validation", "test": "test"})
MMLU_SPLITS = MappingProxyType({"dev": "dev", "validation": "validation", "test": "test"})
ONLY_TEST = MappingProxyType({"test": "test"})
TEST_CALLED_TRAIN = MappingProxyType({"test": "train"})
"""Benchmarks whose one split the hub calls "train"; nobody should train on them."""


def _aime(
    name: str, hub_id: str, splits: Mapping[str, str], configs: tuple[str | None, ...] = (None,)
) -> DataSet:
    return DataSet(name, hub_id, splits, golds.aime, configs, "number", ids=("id",), max_tokens=4096)


def _olympiadbench(name: str, *, numerical: bool = False) -> DataSet:
    return DataSet(
        name,
        "Hothan/OlympiadBench",
        TEST_CALLED_TRAIN,
        golds.olympiad,
        ("OE_TO_maths_en_COMP",),
        question=with_context,
        ids=("id",),
        subject=("subfield",),
        max_tokens=4096,
        keep=numerical_only if numerical else None,
    )


def _deepmath(name: str, *, hardest_only: bool = False) -> DataSet:
    return DataSet(
        name,
        "zwhe99/DeepMath-103K",
        ONLY_TRAIN,
        golds.expected,
        subject=("topic",),
        level=("difficulty",),
        keep=hardest if hardest_only else None,
        loose=True,
        streamed=True,
    )


def _arc(name: str, *configs: str) -> DataSet:
    return DataSet(
        name,
        "allenai/ai2_arc",
        THREE_SPLITS,
        options.arc_letter,
        configs,
        "choice",
        question=arc_question,
        choices=options.arc_choices,
        ids=("id",),
    )


def _mmlu(name: str, *configs: str) -> DataSet:
    return DataSet(
        name,
        "cais/mmlu",
        MMLU_SPLITS,
        options.choice_by_index,
        configs,
        "choice",
        choices=options.listed_choices,
        subject=("subject",),
        split_field="split",
    )


_ENTRIES = (
    # Mathematics
    DataSet("gsm8k", "openai/gsm8k", TRAIN_TEST, golds.gsm8k, ("main",), "number", max_tokens=1024),
    DataSet(
        "math",
        "EleutherAI/hendrycks_math",
        TRAIN_TEST,
        golds.math,
        MATH_SUBJECTS,
        ids=("unique_id", "index"),
        subject=("type", "subject"),
        max_tokens=2048,
    ),
    # All of MATH but MATH-500, which is its other split (Lightman et al. 2023, arXiv 2305.20050).
    DataSet(
        "math12k",
        "nlile/hendrycks-MATH-benchmark",
        TRAIN_TEST,
        golds.math,
        ids=("unique_id",),
        subject=("subject", "type"),
        max_tokens=2048,
    ),
    DataSet(
        "math500",
        "HuggingFaceH4/MATH-500",
        ONLY_TEST,
        golds.math,
        ids=("unique_id",),
        subject=("subject", "type"),
        max_tokens=2048,
    ),
    DataSet(
        "svamp",
        "ChilleD/SVAMP",
        TRAIN_TEST,
        golds.number,
        kind="number",
        question=body_and_question,
        ids=("ID",),
        subject=("Type",),
    ),
    DataSet("minerva", "math-ai/minervamath", ONLY_TEST, golds.minerva, ids=("idx",), subject=("type",)),
    # Competitions
    _aime("aime24", "HuggingFaceH4/aime_2024", TEST_CALLED_TRAIN),
    _aime("aime25", "opencompass/AIME2025", ONLY_TEST, ("AIME2025-I", "AIME2025-II")),
    _aime("aime22_24", "AI-MO/aimo-validation-aime", TEST_CALLED_TRAIN),
    DataSet(
        "beyond_aime", "ByteDance-Seed/BeyondAIME", ONLY_TEST, golds.number, kind="number", max_tokens=4096
    ),
    DataSet("amc23", "math-ai/amc23", ONLY_TEST, golds.number, kind="number", ids=("id",)),
    _olympiadbench("olympiadbench"),
    _olympiadbench("olympiadbench_numerical", numerical=True),
    # Multiple choice
    DataSet(
        "aqua",
        "deepmind/aqua_rat",
        THREE_SPLITS,
        options.letter,
        ("raw",),
        "choice",
        choices=options.listed_choices,
    ),
    # allenai/math_qa is a script, which `datasets` no longer runs; this copy has the same rows.
    DataSet(
        "mathqa",
        "regisss/math_qa",
        THREE_SPLITS,
        options.letter,
        kind="choice",
        choices=options.spelled_choices,
        loose=True,
    ),
    _arc("arc", "ARC-Challenge", "ARC-Easy"),
    _arc("arc_challenge", "ARC-Challenge"),
    _arc("arc_easy", "ARC-Easy"),
    _mmlu("mmlu", "all"),
    _mmlu("mmlu_math", *MMLU_MATH_SUBJECTS),
    DataSet(
        "gpqa_diamond",
        "Idavidrein/gpqa",
        TEST_CALLED_TRAIN,
        options.first,
        ("gpqa_diamond",),
        "choice",
        question=gpqa_question,
        choices=options.right_first,
        ids=("Record ID",),
        subject=("High-level domain",),
        shuffled=True,
    ),
    # Instructions
    DataSet(
        "ifeval",
        "google/IFEval",
        TEST_CALLED_TRAIN,
        kinds.instructions,
        kind="instructions",
        question=prompt,
        ids=("key",),
        max_tokens=2048,
    ),
    DataSet(
        "ifbench",
        "allenai/IFBench_test",
        TEST_CALLED_TRAIN,
        kinds.instructions,
        kind="instructions",
        question=prompt,
        ids=("key",),
        max_tokens=2048,
    ),
    DataSet(
        "if_multi_constraints",
        "allenai/IF_multi_constraints_upto5",
        ONLY_TRAIN,
        rl_sets.ground_truth,
        kind="instructions",
        question=rl_sets.message,
        ids=("key",),
        loose=True,
        max_tokens=2048,
    ),
    DataSet(
        "rlvr_ifeval",
        "allenai/RLVR-IFeval",
        ONLY_TRAIN,
        rl_sets.ground_truth,
        kind="instructions",
        question=rl_sets.message,
        subject=("constraint_type",),
        loose=True,
        max_tokens=2048,
    ),
    # Programs: the tests are run in the sandbox (docs/code.md)
    DataSet(
        "mbpp",
        "google-research-datasets/mbpp",
        THREE_SPLITS,
        code_sets.mbpp,
        ("full",),
        "code",
        question=code_sets.mbpp_question,
        ids=("task_id",),
    ),
    DataSet(
        "humaneval",
        "openai/openai_humaneval",
        ONLY_TEST,
        code_sets.humaneval,
        kind="code",
        question=code_sets.humaneval_question,
        ids=("task_id",),
    ),
    DataSet(
        "apps",
        "",
        TRAIN_TEST,
        code_sets.apps,
        kind="code",
        question=code_sets.apps_question,
        ids=("problem_id", "id"),
        level=("difficulty",),
        loose=True,
        home="https://huggingface.co/datasets/codeparrot/apps/tree/main",
    ),
    # Mixed: GSM8K, MATH and RLVR-IFeval, each row with its verifier
    DataSet(
        "rlvr_mixed",
        "allenai/RLVR-GSM-MATH-IF-Mixed-Constraints",
        ONLY_TRAIN,
        rl_sets.ground_truth,
        question=rl_sets.without_shots,
        subject=("dataset",),
        row_kind=rl_sets.task,
        loose=True,
        mode="lenient",
        max_tokens=2048,
    ),
    # Texts
    DataSet(
        "wiki_continuation",
        "Salesforce/wikitext",
        THREE_SPLITS,
        texts.continuation,
        ("wikitext-103-raw-v1",),
        "overlap",
        question=texts.shown,
        keep=texts.is_long,
        streamed=True,
    ),
    # Open: there is no truth, only peers judge
    DataSet(
        "longwriter",
        "THUDM/LongWriter-6k",
        ONLY_TRAIN,
        texts.no_truth,
        kind="open",
        question=rl_sets.message,
    ),
    DataSet(
        "hellobench",
        "",
        ONLY_TEST,
        texts.no_truth,
        kind="open",
        question=texts.request,
        ids=("id",),
        subject=("category",),
        home="github.com/Quehry/HelloBench",
    ),
    DataSet(
        "writingbench",
        "",
        ONLY_TEST,
        texts.no_truth,
        kind="open",
        question=texts.request,
        ids=("index",),
        subject=("domain1",),
        home="github.com/X-PLUG/WritingBench",
    ),
    # Mathematics for RL
    DataSet(
        "polaris",
        "POLARIS-Project/Polaris-Dataset-53K",
        ONLY_TRAIN,
        golds.plain,
        level=("difficulty",),
        loose=True,
    ),
    _deepmath("deepmath"),
    _deepmath("deepmath_9_10", hardest_only=True),
    DataSet(
        "skywork_or1",
        "Skywork/Skywork-OR1-RL-Data",
        MappingProxyType({"train": "math"}),
        rl_sets.verl_truth,
        question=rl_sets.message,
        subject=("data_source",),
        loose=True,
    ),
    DataSet(
        "eurus2",
        "PRIME-RL/Eurus-2-RL-Data",
        MappingProxyType({"train": "train", "validation": "validation"}),
        rl_sets.verl_truth,
        question=rl_sets.message,
        subject=("data_source",),
        keep=rl_sets.is_mathematics,
        loose=True,
        streamed=True,
    ),
    # Large, read as streams
    DataSet(
        "numinamath_cot",
        "AI-MO/NuminaMath-CoT",
        TRAIN_TEST,
        golds.boxed,
        subject=("source",),
        loose=True,
        streamed=True,
    ),
    DataSet(
        "numinamath_tir",
        "AI-MO/NuminaMath-TIR",
        TRAIN_TEST,
        golds.boxed,
        loose=True,
        streamed=True,
    ),
    DataSet(
        "openr1_math",
        "open-r1/OpenR1-Math-220k",
        ONLY_TRAIN,
        golds.plain,
        ("default",),
        subject=("problem_type",),
        loose=True,
        streamed=True,
    ),
    DataSet(
        "openmathreasoning",
        "nvidia/OpenMathReasoning",
        MappingProxyType({"train": "cot", "cot": "cot", "tir": "tir"}),
        golds.expected,
        subject=("problem_source",),
        loose=True,
        streamed=True,
    ),
)
DATA_SETS: Mapping[str, DataSet] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
"""Data sets whose fields and homes are known, by name."""


def find_data_set(name: str) -> DataSet | None:
    """Return the data set of this name, however it is spelled, or of this hub id; None if none is known.

    >>> [find_data_set(name).name for name in ("MATH-500", "NuminaMath-CoT", "openai/gsm8k")]
    ['math500', 'numinamath_cot', 'gsm8k']
    """
    plain = _plain(name)
    by_name = {_plain(entry.name): entry for entry in DATA_SETS.values()}
    by_home = {entry.hub_id.lower(): entry for entry in reversed(tuple(DATA_SETS.values())) if entry.hub_id}
    return by_name.get(plain) or by_home.get(name.lower())


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name.lower())
