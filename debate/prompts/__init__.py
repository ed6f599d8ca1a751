"""The texts of a debate and how they become a prompt. default.toml and tiny.toml lie beside this file."""

from debate.prompts.rendering import (
    SECTIONS,
    Task,
    entry_text,
    history_text,
    problem_text,
    raw_prompt,
    render,
    summary_text,
    task_text,
)
from debate.prompts.texts import PromptFileError, PromptTexts, load_prompts

__all__ = [
    "SECTIONS",
    "PromptFileError",
    "PromptTexts",
    "Task",
    "entry_text",
    "history_text",
    "load_prompts",
    "problem_text",
    "raw_prompt",
    "render",
    "summary_text",
    "task_text",
]
