"""Names of new Transposes, given last, when it is known what they serve."""

from __future__ import annotations

from collections import Counter

import onnx_ir as ir

from relayout.graph.editing.writer import TO_BE_NAMED
from relayout.graph.names import Names
from relayout.graph.region import regions_of


def name_transposes(model: ir.Model) -> Counter[str]:
    """Name each new Transpose after the operand it feeds, or after the result it restores.

    One consumer:   `<consumer>_transpose_input_<k>`, for its operand k
    several, or an output of the graph: `<producer>_transpose_output_<k>`, for its result k
    """
    names = Names.of(model)
    new = [
        node for region in regions_of(model) for node in region.graph if TO_BE_NAMED in node.meta
    ]
    names.taken.difference_update([node.name or "" for node in new])
    for node in new:
        node.name = names.fresh(_wanted(node))
    return Counter()


def _wanted(transpose: ir.Node) -> str:
    (result,), source = transpose.outputs, transpose.inputs[0]
    readers = dict.fromkeys(reader for reader, _ in result.uses())
    if len(readers) == 1 and not result.is_graph_output():
        operand = min(index for _, index in result.uses())
        return f"{_title(next(iter(readers)))}_transpose_input_{operand}"
    producer = None if source is None else source.producer()
    if producer is None or source is None:
        return f"{source.name if source is not None else ''}_transpose"
    return f"{_title(producer)}_transpose_output_{producer.outputs.index(source)}"


def _title(node: ir.Node) -> str:
    return node.name or str(node.outputs[0].name if node.outputs else node.op_type)
