# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Networks that torchvision does not have, with random weights, as their papers describe them: U-Net, SSD over MobileNet v1, YOLO v4,
CSRNet.

Each function returns a module of PyTorch that takes images [batch, 3, height, width].
"""
import torch
from torch import nn


def convolution(inputs, outputs, size=3, stride=1, groups=1, activation=nn.ReLU):
    """A convolution that keeps the extents but for the stride, a batch normalisation and the activation."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs), activation())


class UNet(nn.Module):
    """Ronneberger, Fischer, Brox: U-Net (MICCAI 2015), with padding, so that extents stay, and batch normalisation."""

    def __init__(self, channels=(64, 128, 256, 512, 1024), classes=2):
        super().__init__()
        twice = lambda inputs, outputs: nn.Sequential(convolution(inputs, outputs), convolution(outputs, outputs))
        self.down = nn.ModuleList(twice(a, b) for a, b in zip((3, *channels), channels))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(channels, channels[1:]))
        self.joined = nn.ModuleList(twice(2 * a, a) for a in channels[:-1])
        self.pool, self.classes = nn.MaxPool2d(2), nn.Conv2d(channels[0], classes, 1)

    def forward(self, x):
        kept = []
        for level, layers in enumerate(self.down):
            x = layers(self.pool(x) if level else x)
            kept.append(x)
        for level in reversed(range(len(self.up))):
            x = self.joined[level](torch.cat((kept[level], self.up[level](x)), 1))
        return self.classes(x)


class MobileNetSSD(nn.Module):
    """Liu and others: SSD (ECCV 2016), over Howard and others: MobileNets (2017): boxes and scores of all anchors, before
    those that overlap are dropped."""

    def __init__(self, classes=91, anchors=(3, 6, 6, 6, 6, 6)):
        super().__init__()
        relu6 = nn.ReLU6
        apart = lambda a, b, stride=1: nn.Sequential(
            convolution(a, a, 3, stride, a, activation=relu6), convolution(a, b, 1, activation=relu6))
        widths = [(32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), *5 * [(512, 512, 1)]]
        extra = lambda a, narrow, b: nn.Sequential(
            convolution(a, narrow, 1, activation=relu6), convolution(narrow, b, 3, 2, activation=relu6))
        self.parts = nn.ModuleList([
            nn.Sequential(convolution(3, 32, 3, 2, activation=relu6), *(apart(*w) for w in widths)),
            nn.Sequential(apart(512, 1024, 2), apart(1024, 1024)),
            extra(1024, 256, 512), extra(512, 128, 256), extra(256, 128, 256), extra(256, 64, 128)])
        features = (512, 1024, 512, 256, 256, 128)
        self.boxes = nn.ModuleList(nn.Conv2d(f, 4 * n, 1) for f, n in zip(features, anchors))
        self.scores = nn.ModuleList(nn.Conv2d(f, classes * n, 1) for f, n in zip(features, anchors))
        self.number = classes

    def forward(self, x):
        boxes, scores = [], []
        rows = lambda y, width: y.permute(0, 2, 3, 1).reshape(y.shape[0], -1, width)
        for part, box, score in zip(self.parts, self.boxes, self.scores):
            x = part(x)
            boxes.append(rows(box(x), 4))
            scores.append(rows(score(x), self.number))
        return torch.cat(boxes, 1), torch.sigmoid(torch.cat(scores, 1))


class Residual(nn.Module):
    def __init__(self, width, narrow):
        super().__init__()
        self.layers = nn.Sequential(convolution(width, narrow, 1, activation=nn.Mish), convolution(narrow, width, activation=nn.Mish))

    def forward(self, x):
        return x + self.layers(x)


class Stage(nn.Module):
    """A stage of CSPDarknet53: halves the extents; one part of the channels passes the residual blocks, the other does not."""

    def __init__(self, inputs, outputs, blocks, first=False):
        super().__init__()
        mish = lambda a, b, size=1, stride=1: convolution(a, b, size, stride, activation=nn.Mish)
        width = outputs if first else outputs // 2
        self.halve, self.past, self.into = mish(inputs, outputs, 3, 2), mish(outputs, width), mish(outputs, width)
        self.blocks = nn.Sequential(*(Residual(width, inputs if first else width) for _ in range(blocks)), mish(width, width))
        self.join = mish(2 * width, outputs)

    def forward(self, x):
        x = self.halve(x)
        return self.join(torch.cat((self.blocks(self.into(x)), self.past(x)), 1))


class YOLOv4(nn.Module):
    """Bochkovskiy, Wang, Liao: YOLOv4 (2020): CSPDarknet53, spatial pyramid pooling, path aggregation, three maps of predictions."""

    def __init__(self, classes=80):
        super().__init__()
        leaky = lambda a, b, size=1, stride=1: convolution(a, b, size, stride, activation=lambda: nn.LeakyReLU(0.1))
        chain = lambda *steps: nn.Sequential(*(leaky(*step) for step in steps))
        five = lambda a, b: chain((a, b), (b, 2 * b, 3), (2 * b, b), (b, 2 * b, 3), (2 * b, b))
        self.stem = convolution(3, 32, activation=nn.Mish)
        self.stages = nn.ModuleList(Stage(a, b, n, a == 32) for a, b, n in
                                    ((32, 64, 1), (64, 128, 2), (128, 256, 8), (256, 512, 8), (512, 1024, 4)))
        self.before, self.after = chain((1024, 512), (512, 1024, 3), (1024, 512)), chain((2048, 512), (512, 1024, 3), (1024, 512))
        self.pools = nn.ModuleList(nn.MaxPool2d(size, 1, size // 2) for size in (13, 9, 5))
        self.lower, self.side = nn.ModuleList([leaky(512, 256), leaky(256, 128)]), nn.ModuleList([leaky(512, 256), leaky(256, 128)])
        self.up, self.down = nn.ModuleList([five(512, 256), five(256, 128)]), nn.ModuleList([five(512, 256), five(1024, 512)])
        self.halve, self.twice = nn.ModuleList([leaky(128, 256, 3, 2), leaky(256, 512, 3, 2)]), nn.Upsample(scale_factor=2)
        self.heads = nn.ModuleList(nn.Sequential(leaky(a, 2 * a, 3), nn.Conv2d(2 * a, 3 * (classes + 5), 1)) for a in (128, 256, 512))

    def forward(self, x):
        maps = [self.stem(x)]
        for stage in self.stages:
            maps.append(stage(maps[-1]))
        deep = self.before(maps[5])
        deep = self.after(torch.cat((*(pool(deep) for pool in self.pools), deep), 1))
        middle = self.up[0](torch.cat((self.side[0](maps[4]), self.twice(self.lower[0](deep))), 1))
        fine = self.up[1](torch.cat((self.side[1](maps[3]), self.twice(self.lower[1](middle))), 1))
        middle = self.down[0](torch.cat((self.halve[0](fine), middle), 1))
        deep = self.down[1](torch.cat((self.halve[1](middle), deep), 1))
        return tuple(head(y) for head, y in zip(self.heads, (fine, middle, deep)))


class CSRNet(nn.Module):
    """Li, Zhang, Chen: CSRNet (CVPR 2018), configuration B: ten convolutions of VGG-16, then six dilated by two, and a map of densities
    with an eighth of the extents."""

    def __init__(self, front=(64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512), back=(512, 512, 512, 256, 128, 64)):
        super().__init__()
        layers, inputs = [], 3
        for width, dilation in (*((w, 1) for w in front), *((w, 2) for w in back)):
            layers += [nn.Conv2d(inputs, width, 3, padding=dilation, dilation=dilation), nn.ReLU()] if width else [nn.MaxPool2d(2)]
            inputs = width or inputs
        self.layers = nn.Sequential(*layers, nn.Conv2d(inputs, 1, 1))

    def forward(self, x):
        return self.layers(x)
