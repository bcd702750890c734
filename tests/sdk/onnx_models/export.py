"""Exports networks of PyTorch and Keras, with outputs of ONNX Runtime and gradients of PyTorch, to this folder.

Run by `make onnx-answers`, with its own Python. Keras runs on PyTorch there.
"""

import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn

FOLDER = Path(__file__).resolve().parent


class Cnn(nn.Module):
    """Convolutions, a batch normalization, pools, and a flattening by the size of the batch."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 8, 3, groups=2, bias=False)
        self.out = nn.Linear(8 * 3 * 3, 3)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.norm(self.first(x))), 2)
        x = nn.functional.avg_pool2d(nn.functional.silu(self.second(x)), 2, stride=1, padding=1)
        return torch.log_softmax(self.out(x.view(x.size(0), -1)), -1)


class Block(nn.Module):
    """A transformer's block: attention of two heads with a causal mask, and a network of two layers."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.norm, self.last = nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.project = nn.Linear(8, 24), nn.Linear(8, 8)
        self.wide, self.narrow = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, tokens):
        x = self.embed(tokens)
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(nn.functional.gelu(self.wide(self.last(x))))


class Recurrent(nn.Module):
    """An LSTM of two layers and a GRU in both directions."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 5, num_layers=2, batch_first=True)
        self.gru = nn.GRU(5, 4, batch_first=True, bidirectional=True)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        rows, _ = self.gru(self.lstm(x)[0])
        return self.out(rows[:, -1])


def main():
    """Writes the networks, and answers.npz."""
    torch.manual_seed(0)
    normal = np.random.default_rng(0).normal
    image = normal(size=(3, 1, 8, 8)).astype(np.float32)
    mlp = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.ELU(), nn.Linear(8, 2))
    tokens = np.arange(10).reshape(2, 5) * 7 % 11
    answers = {}
    for name, module, x, dynamo in (
        ("mlp", mlp, normal(size=(5, 4)).astype(np.float32), False),
        ("cnn", Cnn(), image, False),
        ("block", Block(), tokens, False),
        ("block_by_dynamo", Block(), tokens, True),
        ("cnn_by_dynamo", Cnn(), image, True),
        ("recurrent", Recurrent(), normal(size=(2, 6, 3)).astype(np.float32), False),
    ):
        _randomize(module)
        _export(module.eval(), torch.tensor(x), name, dynamo)
        _answer(answers, name, x, module.eval(), {} if dynamo else dict(module.named_parameters()))
    model = keras.Sequential(
        [
            keras.layers.Input((8, 8, 1)),
            keras.layers.Conv2D(4, 3, padding="same", activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(4, 3, strides=2, activation="gelu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    image = image.transpose(0, 2, 3, 1)
    model(image)
    model.export(FOLDER / "keras_cnn.onnx", format="onnx", verbose=False)
    _answer(answers, "keras_cnn", image, model, {})
    np.savez_compressed(FOLDER / "networks.npz", **answers)


def _randomize(module):
    for parameter in module.parameters():  # else an exporter merges those that are equal
        parameter.data.copy_(torch.randn_like(parameter) / 3)
    for name, buffer in module.named_buffers():
        if buffer.is_floating_point():
            buffer.copy_(torch.rand_like(buffer) + 0.5 if "var" in name else torch.randn_like(buffer))


def _export(module, x, name, dynamo):
    path = FOLDER / f"{name}.onnx"
    if dynamo:
        shapes = ({0: torch.export.Dim("batch", min=2)},)
        torch.onnx.export(module, (x,), path, dynamo=True, external_data=False, opset_version=20, dynamic_shapes=shapes)
        _without_notes(path)
        return
    torch.onnx.export(
        module,
        (x,),
        path,
        dynamo=False,
        opset_version=17,
        input_names=["x"],
        output_names=["y"],
        dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
        do_constant_folding=False,
        training=torch.onnx.TrainingMode.PRESERVE,
    )


def _without_notes(path):
    """Removes the exporter's notes about where nodes come from."""
    model = onnx.load(path)
    for item in (model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.input):
        del item.metadata_props[:]
    for item in (model.graph, *model.graph.node):
        item.doc_string = ""
    onnx.save(model, path)


def _answer(answers, name, x, module, parameters):
    """Stores the input, ONNX Runtime's output, and the gradients of the sum of squares of the output."""
    session = onnxruntime.InferenceSession(str(FOLDER / f"{name}.onnx"), providers=["CPUExecutionProvider"])
    answers[f"{name}|x"] = x
    answers[f"{name}|y"] = session.run(None, {session.get_inputs()[0].name: x})[0]
    tensor = torch.tensor(x, requires_grad=x.dtype == np.float32)
    loss = (module(tensor) ** 2).sum()
    sources = ([("x", tensor)] if tensor.requires_grad else []) + list(parameters.items())
    if not sources:
        return
    gradients = torch.autograd.grad(loss, [value for _, value in sources])
    for (label, _), gradient in zip(sources, gradients, strict=True):
        answers[f"{name}|gradient|{label}"] = gradient.detach().numpy()


if __name__ == "__main__":
    main()
