"""The settings of engines outside this process's model: a server, and vLLM."""

from __future__ import annotations

from pydantic import Field

from debate.settings import Settings


class ServerConfig(Settings):
    """A server that answers as OpenAI's does; its key is $OPENAI_API_KEY and stands in no file."""

    base_url: str | None = None
    """Where it answers, with its path, as in "http://localhost:8000/v1"."""
    concurrency: int = Field(default=64, ge=1)
    """Requests under way at a time."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Seconds for one request."""
    retries: int = Field(default=4, ge=0)
    """How often a request is sent again after a time-out, 429 or 5xx, after waits that double."""


class VLLMConfig(Settings):
    """vLLM within this process."""

    gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)
    """Share of the GPU's memory that it takes."""
    max_model_len: int | None = Field(default=None, ge=1)
    """Prompt plus completion; None is the model's own limit."""
    enforce_eager: bool = False
    """Whether to leave out CUDA graphs: starts sooner, samples slower."""
    tensor_parallel_size: int = Field(default=1, ge=1)
    """GPUs that share the model."""
