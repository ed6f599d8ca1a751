"""A way for whole weights that needs no GPU: the tensors themselves travel in vLLM's calls.

Whoever imports this knows it: ``raw_prompt`` is a setting of engines so that their processes import it too.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from vllm.distributed.weight_transfer.base import (
    TrainerInitInfo,
    TrainerWeightTransferEngine,
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory, WeightTransferTrainerFactory
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

AT_A_TIME = 5


def raw_prompt(messages):
    return " ".join(message.content for message in messages)


@dataclass
class Meeting(WeightTransferInitInfo):
    word: str


@dataclass
class Part(WeightTransferUpdateInfo):
    tensors: list


class Receiver(WeightTransferEngine):
    init_info_cls, update_info_cls = Meeting, Part

    def init_transfer_engine(self, init_info):
        assert init_info.word == "hello"

    def start_weight_update(self):
        initialize_layerwise_reload(self.model)

    def update_weights(self, update_info):
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info):
        self.model.load_weights((name, torch.from_numpy(value)) for name, value in update_info.tensors)

    def finish_weight_update(self):
        finalize_layerwise_reload(self.model, self.model_config)

    def shutdown(self):
        pass


@dataclass
class Settings(TrainerInitInfo):
    backend: ClassVar[str] = "tensors"


class Sender(TrainerWeightTransferEngine):
    init_info_cls = Settings

    @classmethod
    def trainer_init(cls, init_info, *, client, source):
        client.init_weight_transfer_engine({"word": "hello"})
        return cls(client=client, source=source)

    def send_weights(self):
        described = [(one.name, one.dtype, one.shape) for one in self.source.metadata()]
        tensors = list(self.source)
        assert described == [(name, value.dtype, tuple(value.shape)) for name, value in tensors]
        self.client.start_weight_update()
        for start in range(0, len(tensors), AT_A_TIME):
            part = [(name, value.numpy()) for name, value in tensors[start : start + AT_A_TIME]]
            self.client.update_weights({"tensors": part})
        self.client.finish_weight_update()


WeightTransferEngineFactory.register_engine("tensors", Receiver)
WeightTransferTrainerFactory.register_engine("tensors", Sender)
