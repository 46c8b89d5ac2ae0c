"""What a choice of layouts is made under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from relayout.assign.part import Part
from relayout.ops.measure import Objective, objective_of
from relayout.targets.prices.table import RuntimePrices
from relayout.targets.profiles.profile import profile_of_record
from relayout.targets.target import ONNX, Target, target_of, with_prices

FLAGS = (
    "free_inputs",
    "free_outputs",
    "keeps_sums",
    "recomputes",
    "ignores_passes",
    "keeps_joined",
)


@dataclass(frozen=True, slots=True)
class Terms:
    """What is made least on which target, and what of the interface may change."""

    objective: Objective = Objective.BYTES
    target: Target = ONNX
    dims: Mapping[str, int] = field(default_factory=dict)
    free_inputs: bool = False
    free_outputs: bool = False
    keeps_sums: bool = False
    """Whether sums of products in quantised parts stay as they are, since rounding showed."""
    recomputes: bool = True
    """Whether operators in quantised parts may be restated in ways that change rounding."""
    ignores_passes: bool = False
    """Whether what steps in place of an operator read and write again only decides between equals.

    It is neither a Transpose nor a copy, and counts after both where Transposes are counted."""
    keeps_joined: bool = False
    """Whether what is read again counts where nodes stay apart that the runtime would join."""
    no_figure_grows: bool = False
    """Whether what is kept has no more of any figure: Transposes, bytes and predicted time.

    So it is where nothing was asked for and the target prefers another objective than time."""

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> Terms:
        """The terms that a certificate was made under."""
        einsum, keep_size = (settings.get(name) is True for name in ("einsum", "keep_size"))
        keep = settings.get("keep") or ()
        listed, profile = settings.get("prices"), settings.get("profile")
        prices = None if listed is None else RuntimePrices.of_json(listed)
        target = with_prices(str(settings.get("target")), prices)
        return cls(
            objective_of(str(settings.get("minimize"))),
            target_of(
                target,
                keep,
                einsum=einsum,
                keep_size=keep_size,
                max_rank=settings.get("max_rank"),
                profile=None if profile is None else profile_of_record(profile),
            ),
            settings.get("dims") or {},
            *(settings.get(name) is True for name in FLAGS),
        )

    @property
    def with_care(self) -> tuple[Terms, Terms]:
        """The terms to choose by, one after the other, if other rounding shows at quantisers."""
        alike = replace(self, recomputes=False)
        return alike, replace(alike, keeps_sums=True)

    @property
    def prices(self) -> RuntimePrices | None:
        """The prices that decide, where time is made least."""
        return self.target.prices if self.objective is Objective.TIME else None

    @property
    def rewrites_transposes(self) -> bool:
        """Whether Transposes that the target is slow at are written in another way in the end.

        That may take two for one, so not where no figure may grow.
        """
        return self.prices is not None and not self.frees and not self.no_figure_grows

    @property
    def leaves_bytes(self) -> bool:
        """Whether what runtimes compute in bytes may be stated such that they compute in floats."""
        return self.objective is Objective.COUNT and self.target.leaves_bytes

    @property
    def frees(self) -> bool:
        """Whether anything of the interface may change."""
        return self.free_inputs or self.free_outputs

    @property
    def are_reported(self) -> bool:
        """Whether they are those by which reports explain what is left."""
        plain = Terms(target=self.target, dims=self.dims, no_figure_grows=self.no_figure_grows)
        return self == plain

    @property
    def settings(self) -> dict[str, Any]:
        """The terms as a certificate writes them down."""
        return {
            "target": self.target.name,
            "keep": list(self.target.gate.selectors),
            "einsum": self.target.einsum,
            "keep_size": self.target.keep_size,
            **({} if self.target.max_rank is None else {"max_rank": self.target.max_rank}),
            **({} if self.target.profile is None else {"profile": self.target.profile.to_json()}),
            "minimize": self.objective.value,
            "dims": dict(self.dims),
            **({} if self.prices is None else {"prices": self.prices.to_json()}),
            **{name: getattr(self, name) for name in FLAGS},
        }

    def of(self, part: Part) -> Terms:
        """The terms of a part: only the borders of the main graph are the model's."""
        if part.is_main:
            return self
        return replace(self, free_inputs=False, free_outputs=False)
