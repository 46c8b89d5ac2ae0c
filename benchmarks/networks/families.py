"""Networks by family: of torchvision and transformers, where these are installed, and written here.

Weights are random: times do not depend on them, and errors are taken against the same weights in
float32. `BUILT_WITH` are the networks that kernels and choices were made on, `SET_ASIDE` those
that are only measured.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.networks.written.decoders import GptStep, LlamaPrompt
from benchmarks.networks.written.dense_maps import (
    TinyYolo,
    UNet,
    Yolo,
    resized,
    shuffled,
    transposed,
)
from benchmarks.networks.written.mobilevit import MobileViT
from benchmarks.networks.written.pyramids import CoAtNet, Pvt, Xcit


@dataclass(frozen=True, slots=True)
class Example:
    """A network and what it is called with."""

    module: Any
    inputs: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a network is made for a batch size."""

    family: str
    package: str
    make: Callable[[int], Example]

    @property
    def is_installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None


def vision(family: str, name: str, side: int = 224) -> Recipe:
    """A classifier of torchvision."""

    def make(batch: int) -> Example:
        models = importlib.import_module("torchvision.models")
        return calibrated(models.get_model(name, weights=None), batch, side)

    return Recipe(family, "torchvision", make)


def segmenter(name: str, side: int = 224) -> Recipe:
    """A segmenter of torchvision: the map of classes alone."""

    def make(batch: int) -> Example:
        models = importlib.import_module("torchvision.models")
        made = models.get_model(name, weights=None, weights_backbone=None, aux_loss=False)
        return calibrated(FirstOf(made), batch, side)

    return Recipe("segmentation", "torchvision", make)


def text(family: str, name: str, length: int = 128, **settings: Any) -> Recipe:
    """An encoder, or a decoder that reads a prompt, of transformers."""

    def make(batch: int) -> Example:
        transformers = importlib.import_module("transformers")
        config = getattr(transformers, f"{name}Config")(**settings)
        config.use_cache = False
        made = getattr(transformers, f"{name}Model")(config)
        tokens = torch.randint(0, 1000, (batch, length))
        return Example(FirstOf(made), (tokens,))

    return Recipe(family, "transformers", make)


def calibrated(module: Any, batch: int, side: int) -> Example:
    """An image network whose normalisations have statistics that keep numbers of common size."""
    norms = [each for each in module.modules() if isinstance(each, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    if norms:
        with torch.no_grad():
            module.train()(torch.randn(4, 3, side, side))
    for weight in module.parameters():
        if weight.dim() > 1 and not weight.any():  # a head that begins at nothing
            torch.nn.init.normal_(weight, std=0.02)
    return Example(module.eval(), (torch.randn(batch, 3, side, side),))


class FirstOf(torch.nn.Module):  # type: ignore[misc]  # torch is read without its types
    """A module without all that it returns besides its first result."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: Any) -> Any:
        made = self.module(*inputs)
        if isinstance(made, torch.Tensor):
            return made
        return next(iter(made.values())) if isinstance(made, dict) else made[0]


def images(family: str, make: Callable[[], Any], side: int = 224) -> Recipe:
    """A network of images that is written here."""
    return Recipe(family, "torch", lambda batch: calibrated(make(), batch, side))


def prompt(family: str, make: Callable[[], Any], length: int) -> Recipe:
    """A decoder that is written here and reads so many tokens at once."""
    return Recipe(
        family, "torch", lambda batch: Example(make(), (torch.randint(0, 1000, (batch, length)),))
    )


def step(family: str, past: int, **settings: int) -> Recipe:
    """A decoder that reads one token, and keys and values of all before it."""

    def make(batch: int) -> Example:
        made = GptStep(**settings)
        heads, width = made.blocks[0].heads, made.norm.weight.shape[0]
        kept = (len(made.blocks), batch, heads, past, width // heads)
        tokens = torch.randint(0, 1000, (batch, 1))
        return Example(made, (tokens, torch.randn(kept), torch.randn(kept)))

    return Recipe(family, "torch", make)


BUILT_WITH: dict[str, Recipe] = {
    "resnet50": vision("resnet", "resnet50"),
    "resnext50_32x4d": vision("resnext", "resnext50_32x4d"),
    "regnet_y_3_2gf": vision("regnet", "regnet_y_3_2gf"),
    "densenet121": vision("densenet", "densenet121"),
    "efficientnet_b0": vision("efficientnet", "efficientnet_b0"),
    "mobilenet_v3_large": vision("mobilenetv3", "mobilenet_v3_large"),
    "convnext_tiny": vision("convnext", "convnext_tiny"),
    "vit_b_16": vision("vit", "vit_b_16"),
    "swin_t": vision("swin", "swin_t"),
    "deeplabv3_mobilenet": segmenter("deeplabv3_mobilenet_v3_large"),
    "bert": text("encoder", "Bert"),
    "gpt2": text("decoder", "GPT2"),
    "mobilevit_xs": images(
        "mobilevit", lambda: MobileViT((16, 32, 48, 64, 80, 96), (96, 120, 144)), 256
    ),
    "pvt_v2_b1": images("pvt or xcit", lambda: Pvt((64, 128, 320, 512), (2, 2, 2, 2))),
    "coatnet_0": images("maxvit or coatnet", CoAtNet),
    "unet": images("u-net", lambda: UNet((32, 64, 128, 256, 512), transposed), 256),
    "yolo_n": images("detection", lambda: Yolo(16, 1), 640),
    "gpt_step": step("decoder step", 255),
    "llama_prompt": prompt("prefill", LlamaPrompt, 256),
}

SET_ASIDE: dict[str, Recipe] = {
    "resnet101": vision("resnet", "resnet101"),
    "resnext101_32x8d": vision("resnext", "resnext101_32x8d"),
    "regnet_x_8gf": vision("regnet", "regnet_x_8gf"),
    "densenet169": vision("densenet", "densenet169"),
    "efficientnet_v2_s": vision("efficientnet", "efficientnet_v2_s"),
    "mobilenet_v3_small": vision("mobilenetv3", "mobilenet_v3_small"),
    "convnext_small": vision("convnext", "convnext_small"),
    "vit_b_32": vision("vit", "vit_b_32"),
    "swin_v2_t": vision("swin", "swin_v2_t", 256),
    "maxvit_t": vision("maxvit or coatnet", "maxvit_t"),
    "fcn_resnet50": segmenter("fcn_resnet50"),
    "distilbert": text("encoder", "DistilBert"),
    "opt": text("decoder", "OPT"),
    "mobilevit_s": images(
        "mobilevit", lambda: MobileViT((16, 32, 64, 96, 128, 160), (144, 192, 240)), 256
    ),
    "xcit_tiny": images("pvt or xcit", Xcit),
    "unet_resized": images("u-net", lambda: UNet((24, 48, 96, 192), resized), 256),
    "unet_shuffled": images("u-net", lambda: UNet((32, 64, 128, 256), shuffled), 192),
    "yolo_tiny": images("detection", TinyYolo, 416),
    "gpt_step_wide": step("decoder step", 511, width=1024, heads=16, depth=6),
    "llama_prompt_wide": prompt("prefill", lambda: LlamaPrompt(2048, 16, 16, 4, 128), 128),
}
