"""Programs of C++ kernels as a provider."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import onnx_ir as ir

from relayout.backends.torch.program.program import ProgramStep
from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.native_algorithm import build_mark, fastest_kind
from relayout.backends.torch.providers.native_region import (
    Native,
    NativeRegion,
    NativeSpan,
    native_failure,
    native_regions,
)
from relayout.backends.torch.providers.orders import LAST
from relayout.backends.torch.providers.prices import Prices
from relayout.backends.torch.providers.provider import Candidate, Provider
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.work import RegionWork, Work


@dataclass(frozen=True)
class NativeWork(RegionWork):
    """Steps that there is a program of C++ kernels for."""

    native: Native


class NativeProvider(Provider):
    """Runs of steps as one program, in float32 on a CPU."""

    name = "native"
    is_own = True

    def refusal(self, work: Work, site: Site) -> str | None:
        if not _is_meant(site):
            return "C++ kernels compute in float32 on a CPU"
        return None if isinstance(work, NativeWork) else "C++ kernels take whole regions"

    def build(self, work: Work, _site: Site) -> Sequence[Candidate]:
        if not isinstance(work, NativeWork):
            return []
        return [NativeRegion(work.native, work.operands, work.results, work.steps)]

    def describe(self, _candidate: Candidate) -> str:
        return "one program of C++ kernels"

    def fault(self, site: Site) -> str | None:
        return native_failure() if _is_meant(site) else None

    def regions(
        self,
        steps: Sequence[ProgramStep],
        groups: Mapping[ir.Node, LibraryGroup],
        site: Site,
        prices: Prices,
    ) -> Sequence[RegionWork | ProgramStep]:
        if not _is_meant(site):
            return steps
        found = native_regions(steps, dict(groups), partial(fastest_kind, prices))
        return [_work(each) if isinstance(each, NativeSpan) else each for each in found]


def _is_meant(site: Site) -> bool:
    return site.device == "cpu" and site.is_float32


def _work(span: NativeSpan) -> NativeWork:
    ports = (span.nodes, span.operands, span.results)
    return NativeWork(*ports, span.steps, _signature(span), span.native)


def _signature(span: NativeSpan) -> str:
    """A region by its kernels, its steps and the orders that these would have."""
    native = span.native
    described = [build_mark(), native.entries, native.results, *_unusual(span.steps)]
    text = json.dumps(described, default=str)
    return f"region of {len(span.nodes)} nodes {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _unusual(steps: Sequence[ProgramStep]) -> list[str]:
    """The convolutions that are not channels last throughout."""
    forms = [(n, step.realisation) for n, step in enumerate(steps)]
    return [
        f"{number} {form.name}"
        for number, form in forms
        if isinstance(form, ConvForm) and (form.reads, form.writes) != (LAST, LAST)
    ]
