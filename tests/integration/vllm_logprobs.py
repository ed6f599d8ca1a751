"""Run in the bench environment: what vLLM says of exported weights, as JSON on the last line.

python vllm_logprobs.py MODEL PROMPTS [ADAPTER]: six tokens after each prompt with their log-probabilities
at temperature 1.
"""

import json
import sys


def main() -> None:
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest

    model, prompts, *adapter = sys.argv[1:]
    engine = LLM(model, dtype="float32", enforce_eager=True, max_model_len=64, enable_lora=bool(adapter))
    outputs = engine.generate(
        [{"prompt_token_ids": ids} for ids in json.loads(prompts)],
        SamplingParams(max_tokens=6, temperature=1.0, seed=1, logprobs=0, ignore_eos=True),
        lora_request=LoRARequest("exported", 1, adapter[0]) if adapter else None,
        use_tqdm=False,
    )
    drawn = [output.outputs[0] for output in outputs]
    settings = engine.get_default_sampling_params()
    result = {
        "tokens": [list(one.token_ids) for one in drawn],
        "logprobs": [
            [table[token].logprob for token, table in zip(one.token_ids, one.logprobs, strict=True)]
            for one in drawn
        ],
        "settings": [settings.temperature, settings.top_p, settings.top_k, settings.max_tokens],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
