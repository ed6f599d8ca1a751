"""What vLLM's CPU build finds in its environment, wherever a benchmark starts it: on a GPU nothing."""

import torch

ON_GPU = torch.cuda.is_available()
ON_A_CPU = {
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "TORCH_COMPILE_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
}
FOR_VLLM = {} if ON_GPU else ON_A_CPU
"""On a GPU vLLM compiles, as in a run."""
