#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Writes the ONNX files that graphs.py runs: networks exported by torch.onnx, and files of a folder whose generated weights
become random ones. All weights are random, and so are the statistics of batch normalisations.

  graph_files.py FOLDER [--light FOLDER_OF_ONNX] [NAME...]

Writes FOLDER/NAME.onnx for each name, or for all. FOLDER_OF_ONNX is `onnx/backend/test/data/light` of the repository of ONNX,
whose files generate each weight as a constant by ConstantOfShape. The batch of every file is a size `batch`, the length of a
sequence a size `length`, and files that end in Softmax give its input too, as one large logit would hide the others.

Python packages torch, torchvision, transformers, onnx, onnxscript, numpy.
"""
import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

# --- networks that are exported ---


def randomise(model, torch):
    """Random statistics and scales of every batch normalisation; other weights keep what the network draws itself."""
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            module.weight.uniform_(0.5, 1.5)
            module.bias.normal_(0, 0.1)
        elif isinstance(module, torch.nn.LayerNorm):
            module.weight.uniform_(0.5, 1.5)
            module.bias.normal_(0, 0.1)
    return model.eval()


def tensor_of(found):
    return found if not hasattr(found, "last_hidden_state") else found.last_hidden_state


def networks():
    """{name: function that returns a network, its arguments, their names, the axes that are sizes}"""
    import torch
    import torchvision
    import transformers
    import vision_networks

    nn = torch.nn
    image = lambda extent=224: ((torch.rand(2, 3, extent, extent),), ["image"], [{0: "batch"}])
    tokens = lambda words: ((torch.randint(words, (2, 24)),), ["tokens"], [{0: "batch", 1: "length"}])

    class Encoder(nn.Module):
        """The states of the last layer, of tokens and a mask."""

        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, tokens, mask):
            return tensor_of(self.model(input_ids=tokens, attention_mask=mask))

    class Prefill(nn.Module):
        """Logits of all tokens, and the keys and values that later tokens need."""

        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, tokens):
            out = self.model(input_ids=tokens, use_cache=True)
            return (out.logits, *(x for layer in out.past_key_values.layers for x in (layer.keys, layer.values)))

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(10000, 100)
            self.layers = nn.LSTM(100, 200, bidirectional=True, batch_first=True)
            self.tags = nn.Linear(400, 17)

        def forward(self, tokens):
            return self.tags(self.layers(self.words(tokens))[0])

    class Attention(nn.Module):
        """The weighted mean of a GRU's states, as a classifier of sentences takes it."""

        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(10000, 100)
            self.layer = nn.GRU(100, 200, batch_first=True)
            self.key, self.score, self.classes = nn.Linear(200, 200), nn.Linear(200, 1, bias=False), nn.Linear(200, 5)

        def forward(self, tokens):
            states = self.layer(self.words(tokens))[0]
            weights = torch.softmax(self.score(torch.tanh(self.key(states))), 1)
            return self.classes((weights * states).sum(1))

    def encoder(config, model):
        mask = torch.ones(2, 24, dtype=torch.long)
        mask[1, 20:] = 0
        (words,), _, (axes,) = tokens(config.vocab_size)
        return Encoder(model(config)), (words, mask), ["tokens", "mask"], [axes, axes]

    bert, distil, gpt = transformers.BertConfig, transformers.DistilBertConfig, transformers.GPT2Config
    tiny = bert(hidden_size=312, num_hidden_layers=4, num_attention_heads=12, intermediate_size=1200)
    return {
        "resnet50": lambda: (torchvision.models.resnet50(), *image()),
        "mobilenet_v2": lambda: (torchvision.models.mobilenet_v2(), *image()),
        "efficientnet_b0": lambda: (torchvision.models.efficientnet_b0(), *image()),
        "resnet18": lambda: (torchvision.models.resnet18(), *image()),
        "inception_v3": lambda: (torchvision.models.inception_v3(aux_logits=False, init_weights=False), *image(299)),
        "csrnet": lambda: (vision_networks.CSRNet(), *image()),
        "vgg16": lambda: (torchvision.models.vgg16(), *image()),
        "unet": lambda: (vision_networks.UNet(), *image(256)),
        "mobilenet_v1_ssd": lambda: (vision_networks.MobileNetSSD(), *image(300)),
        "yolo_v4": lambda: (vision_networks.YOLOv4(), *image(416)),
        "bert_base": lambda: encoder(bert(), transformers.BertModel),
        "distilbert": lambda: encoder(distil(), transformers.DistilBertModel),
        "tinybert": lambda: encoder(tiny, transformers.BertModel),
        "gpt2_prefill": lambda: (Prefill(transformers.GPT2LMHeadModel(gpt())), *tokens(50257)),
        "lstm_tagger": lambda: (Tagger(), *tokens(10000)),
        "gru_attention": lambda: (Attention(), *tokens(10000)),
    }


def export(make, path):
    import torch

    torch.manual_seed(0)
    with torch.no_grad():
        model, arguments, names, axes = make()
        torch.onnx.export(randomise(model, torch), arguments, str(path), input_names=names, dynamo=True, external_data=False,
                          dynamic_shapes=tuple({axis: torch.export.Dim(size) for axis, size in each.items()} for each in axes))


# --- files whose weights are generated ---


def consumer(graph, name):
    """The first operator that reads a value, through changes of its shape, and the number of the operand."""
    for node in graph.node:
        if name in node.input:
            if node.op_type in ("Unsqueeze", "Reshape"):
                return consumer(graph, node.output[0])
            return node.op_type, list(node.input).index(name)
    return "", 0


def random_weight(generator, shape, use):
    """Values that keep activations in range, whatever the depth."""
    if use in (("BatchNormalization", 1), ("BatchNormalization", 4), ("Mul", 1)):
        return generator.uniform(0.5, 1.5, shape)
    if len(shape) < 2:
        return generator.normal(0, 0.1, shape)
    return generator.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)


def free_batch(graph, weights):
    """Makes the batch of inputs, and of constant shapes that begin with it, a size."""
    for value in list(graph.input):
        if value.name in weights:
            graph.input.remove(value)
        else:
            value.type.tensor_type.shape.dim[0].dim_param = "batch"
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for tensor in graph.initializer:
        if tensor.name in shapes and numpy_helper.to_array(tensor)[0] == 1:
            shape = numpy_helper.to_array(tensor).copy()
            shape[0] = 0
            tensor.CopyFrom(numpy_helper.from_array(shape, tensor.name))


def randomise_file(source, path, seed):
    model = onnx.load(source)
    graph = model.graph
    generator = np.random.default_rng(seed)
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    generated = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    for node in generated:
        shape = [int(extent) for extent in weights[node.input[0]]]
        values = random_weight(generator, shape, consumer(graph, node.output[0]))
        graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
        graph.node.remove(node)
    read = {name for node in graph.node for name in node.input}
    for tensor in list(graph.initializer):
        if tensor.name not in read:
            graph.initializer.remove(tensor)
    model.ir_version = 8  # the first versions want initializers among the inputs
    free_batch(graph, weights)
    if graph.node[-1].op_type == "Softmax":
        graph.output.append(helper.make_tensor_value_info(graph.node[-1].input[0], onnx.TensorProto.FLOAT, None))
    onnx.save(model, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--light", type=Path)
    options = parser.parse_intermixed_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    found = {source.stem: source for source in sorted(options.light.glob("*.onnx"))} if options.light else {}
    made = networks() if not options.names or set(options.names) - set(found) else {}
    unknown = set(options.names) - set(made) - set(found)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join([*made, *found])}")
    for number, name in enumerate(options.names or [*made, *found]):
        path = options.folder / f"{name}.onnx"
        if name in found:
            randomise_file(found[name], path, number)
        else:
            export(made[name], path)
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
