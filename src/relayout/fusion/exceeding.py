"""Groups that exceed a limit: none but those of a mode that follows TVM where TVM does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import onnx_ir as ir

from relayout.fusion.arguments import for_operand, for_result
from relayout.fusion.border import inputs_of, results_of
from relayout.fusion.faithful import alone
from relayout.fusion.groups import Group, Limits, Partition
from relayout.fusion.translate import Translation
from relayout.graph.read import shape_of


def arguments_of(group: Group, results: Sequence[ir.Value]) -> int:
    """The arguments of the kernel of a group: tensors, and lengths known only at run time."""
    given = sum(for_operand(shape_of(value)) for value in inputs_of(group))
    return given + sum(for_result(shape_of(value)) for value in results)


def exceeding_arguments(partition: Partition, limits: Limits) -> Iterator[Group]:
    """The groups whose kernels take too many arguments; one operator alone may have to."""
    if not limits.max_args:
        return
    for group, results in zip(partition.groups, results_of(partition), strict=True):
        if arguments_of(group, results) > limits.max_args:
            yield group


def within(partition: Partition, limits: Limits, translation: Translation) -> Partition:
    """A partition in which the groups that exceed a limit are taken apart."""
    while beyond := [id(group) for group in _exceeding(partition, limits)]:
        parts = [
            [alone(node, translation) for node in group.nodes if node not in group.duplicates]
            if id(group) in beyond
            else [group]
            for group in partition.groups
        ]
        partition = replace(partition, groups=tuple(group for part in parts for group in part))
    return partition


def _exceeding(partition: Partition, limits: Limits) -> Iterator[Group]:
    """The groups of several operators beyond a limit, with all that their functions have."""
    wide = {id(group) for group in exceeding_arguments(partition, limits)}
    for group in partition.groups:
        is_large = len(group.nodes) + len(group.helpers) > limits.max_depth
        if len(group.nodes) > 1 and (is_large or id(group) in wide):
            yield group


def exceeding_notices(partitions: Sequence[Partition], limits: Limits, mode: str) -> list[str]:
    """What is reported about groups beyond a limit."""
    groups = [group for part in partitions for group in part.groups]
    large = sum(len(group.nodes) > max(1, limits.max_depth) for group in groups)
    wide = [group for part in partitions for group in exceeding_arguments(part, limits)]
    single = sum(len(group.nodes) == 1 for group in wide)
    several = len(wide) - single
    followed = f"mode {mode} follows TVM, which exceeds its own limit here"
    noted = [
        (large, f"groups of more than {limits.max_depth} operators: {large}; {followed}"),
        (several, f"groups that take more than {limits.max_args} arguments: {several}; {followed}"),
        (single, f"operators that take more than {limits.max_args} arguments alone: {single}"),
    ]
    return [text for number, text in noted if number]
