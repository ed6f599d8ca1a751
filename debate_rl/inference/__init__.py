"""Engines that sample: transformers in this process, OpenAI servers, vLLM.

Importing this package loads none of them: import an engine from its own module.
"""
