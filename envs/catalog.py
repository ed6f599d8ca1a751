"""The data sets by name: one table entry each, with where it lives and where its fields are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from envs import golds
from envs.golds import Gold
from envs.records import Record

MATH_SUBJECTS = (
    "algebra",
    "counting_and_probability",
    "geometry",
    "intermediate_algebra",
    "number_theory",
    "prealgebra",
    "precalculus",
)
MMLU_SUBJECTS = (
    "abstract_algebra",
    "college_mathematics",
    "elementary_mathematics",
    "high_school_mathematics",
)
TRAIN_TEST = MappingProxyType({"train": "train", "test": "test"})


def one_question(row: Record) -> str:
    """The question, or problem, field."""
    return row.text("question", "problem", "question", "Problem")


def body_and_question(row: Record) -> str:
    """SVAMP keeps the story and the question apart."""
    if "question" in row.renamed:
        return row.text("question")
    body = row.text("body", "Body").rstrip()
    return f"{body}{'' if body[-1] in '.?!' else '.'} {row.text('question', 'Question')}"


def with_context(row: Record) -> str:
    """OlympiadBench puts shared premises into a field of their own."""
    context = row.find("context", "context")
    before = f"{context[1]}\n" if context and context[1] else ""
    return before + one_question(row)


@dataclass(frozen=True, slots=True)
class DataSet:
    """One data set: the hub's id, its configurations, our split names to the hub's, and how to read a row."""

    name: str
    hub_id: str
    splits: Mapping[str, str]
    gold: Gold = golds.plain
    configs: tuple[str | None, ...] = (None,)
    kind: Literal["number", "expression", "choice", "auto"] = "auto"
    question: Callable[[Record], str] = one_question
    choices: Callable[[Record], tuple[str, ...]] | None = None
    ids: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    split_field: str | None = field(default=None)
    """A local file may hold several splits and name each row's in this field."""


DATA_SETS: Mapping[str, DataSet] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            DataSet("gsm8k", "openai/gsm8k", TRAIN_TEST, golds.gsm8k, ("main",), "number"),
            DataSet(
                "math",
                "EleutherAI/hendrycks_math",
                TRAIN_TEST,
                golds.math,
                MATH_SUBJECTS,
                ids=("unique_id", "index"),
                subject=("type", "subject"),
            ),
            DataSet(
                "math500",
                "HuggingFaceH4/MATH-500",
                {"test": "test"},
                golds.math,
                ids=("unique_id",),
                subject=("subject", "type"),
            ),
            DataSet(
                "aime24", "HuggingFaceH4/aime_2024", {"test": "train"}, golds.aime, kind="number", ids=("id",)
            ),
            DataSet(
                "aime25",
                "opencompass/AIME2025",
                {"test": "test"},
                golds.aime,
                ("AIME2025-I", "AIME2025-II"),
                "number",
                ids=("id",),
            ),
            DataSet(
                "aime22_24",
                "AI-MO/aimo-validation-aime",
                {"test": "train"},
                golds.aime,
                kind="number",
                ids=("id",),
            ),
            DataSet("amc23", "math-ai/amc23", {"test": "test"}, golds.number, kind="number", ids=("id",)),
            DataSet(
                "olympiadbench",
                "Hothan/OlympiadBench",
                {"test": "train"},
                golds.olympiad,
                ("OE_TO_maths_en_COMP",),
                question=with_context,
                ids=("id",),
                subject=("subfield",),
            ),
            DataSet(
                "minerva",
                "math-ai/minervamath",
                {"test": "test"},
                golds.boxed,
                ids=("idx",),
                subject=("type",),
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
            DataSet(
                "aqua",
                "deepmind/aqua_rat",
                {"train": "train", "validation": "validation", "test": "test"},
                golds.choice,
                ("raw",),
                "choice",
                choices=golds.listed_choices,
            ),
            DataSet(
                "mathqa",
                "allenai/math_qa",
                {"train": "train", "validation": "validation", "test": "test"},
                golds.choice,
                kind="choice",
                choices=golds.spelled_choices,
            ),
            DataSet(
                "mmlu",
                "cais/mmlu",
                {"dev": "dev", "validation": "validation", "test": "test"},
                golds.choice_by_index,
                MMLU_SUBJECTS,
                "choice",
                choices=golds.listed_choices,
                subject=("subject",),
                split_field="split",
            ),
        )
    }
)
"""Data sets whose fields and homes are known."""
