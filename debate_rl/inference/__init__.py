"""Engines that sample: transformers in this process, OpenAI servers, vLLM.

The package loads none of them: import an engine from its own module.
"""
