"""Programs made fast: constants folded into weights, groups as the fastest kernels of a device."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from relayout.backends.torch.choose.choices import Choice
from relayout.backends.torch.choose.frozen import frozen_where_faster
from relayout.backends.torch.choose.joined import joined_where_faster, left_to_inductor
from relayout.backends.torch.choose.memory_format import with_memory_formats
from relayout.backends.torch.choose.plan import KERNELS, Plan
from relayout.backends.torch.choose.settings import TuningSettings
from relayout.backends.torch.program.program import Program, eager_steps
from relayout.fusion.partition import partition
from relayout.graph.invariants import Signature
from relayout.graph.region import Region
from relayout.optimizer.pipeline import Checking, Pass, Pipeline
from relayout.rewrite.activations import RaiseGelu, RaiseSilu
from relayout.rewrite.attention_groups import ShareKeys
from relayout.rewrite.attention_masks import DropIdleMask, RaiseCausal
from relayout.rewrite.biases import BiasApart, JoinBiases
from relayout.rewrite.dead import remove_dead
from relayout.rewrite.idle import DropIdle
from relayout.rewrite.joined_products import JoinProducts
from relayout.rewrite.linear_layers import GemmToMatMul
from relayout.rewrite.scales import FoldBatchNormalization, FoldBias, FoldScale
from relayout.rewrite.worklist import Rewrite, rewrite_model


def tuned(program: Program, settings: TuningSettings | None = None) -> tuple[Program, list[Choice]]:
    """The program with the fastest kernels for its groups, and what was chosen for each.

    Kernels that fail, and what their work is done by, are warned of.
    """
    unchosen = _compiled_as_given(program, settings)
    program = _simplified(program)
    plan = Plan.of(program, groups_of(program.model), settings)
    steps = with_memory_formats(plan.library_steps(), plan)
    steps = with_memory_formats(plan.with_regions(steps), plan)
    steps = plan.with_kernels(steps)
    fastest = joined_where_faster(replace(program, steps=tuple(steps)), plan, unchosen)
    fastest = frozen_where_faster(fastest, plan)
    plan.prices.save()
    plan.notices.of_noise(plan.prices)
    plan.notices.warn()
    return fastest, plan.choices


def _compiled_as_given(program: Program, settings: TuningSettings | None) -> Program | None:
    """The nodes of the model before layouts were chosen, for Inductor to compile as a whole."""
    if program.given is None:
        return None
    given = _simplified(replace(program, model=program.given, given=None))
    steps = Plan.of(given, groups_of(given.model), settings).plain_steps()
    return left_to_inductor(replace(given, steps=tuple(steps)))


def _simplified(program: Program) -> Program:
    """The program with scales and shifts after products in their weights, activations as one."""
    model = program.model.clone()
    rewrites: list[Rewrite] = [FoldBatchNormalization(), FoldScale(), FoldBias(), DropIdle()]
    rewrites += [RaiseGelu(), RaiseSilu(), DropIdleMask(), RaiseCausal()]
    if program.device.startswith("cuda"):
        rewrites += [GemmToMatMul(), JoinBiases(), BiasApart(), JoinProducts(), ShareKeys()]
    fold = Pass("fold and raise for kernels", lambda model: rewrite_model(model, rewrites))
    pipeline = Pipeline((fold, Pass("remove dead nodes", remove_dead)))
    pipeline.run(model, [Checking(Signature.of(model))])
    return replace(program, model=model, steps=eager_steps(model))


def groups_of(model: ir.Model) -> list[tuple[ir.Node, ...]]:
    """The nodes of the main graph that are to share a kernel."""
    graph = model.graph
    region = Region(graph, graph.opset_imports, in_function=False)
    return [group.nodes for group in partition(region, abilities=KERNELS).groups]
