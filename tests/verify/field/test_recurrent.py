"""Recurrent networks against the same steps in standard operators."""

from __future__ import annotations

import pytest

from tests.verify.field.models import status_of

# Two steps of a batch of 3 with 2 inputs and 4 hidden numbers.
HEAD = "g (float[2,3,2] x, float[1,{width},2] w, float[1,{width},4] r, float[1,{biases}] b)"
TAIL = "=> (float[a,c,d,e] y)"

AROUND = """<int64[1] o = {{0}}, int64[2] oo = {{0, 1}}, int64[1] one = {{1}}, float[3,4] zero =
    {{0,0,0,0, 0,0,0,0, 0,0,0,0}}> {{
    ww = Squeeze(w, o) rr = Squeeze(r, o) bb = Squeeze(b, o)
    wb, rb = Split<num_outputs=2>(bb)
    x0, x1 = Split<num_outputs=2>(x)
    i0 = Squeeze(x0, o) i1 = Squeeze(x1, o)
    {steps}
    f0 = Unsqueeze(h{first}, oo) f1 = Unsqueeze(h{second}, oo)
    y = Concat<axis=0>({order}) }}"""

RNN = """g{t} = Gemm<transB=1>({x}, ww, wb) p{t} = Gemm<transB=1>({h}, rr, rb)
    s{t} = Add(g{t}, p{t}) h{t} = Tanh(s{t}) """
LSTM = """g{t} = Gemm<transB=1>({x}, ww, wb) p{t} = Gemm<transB=1>({h}, rr, rb)
    s{t} = Add(g{t}, p{t})
    ii{t}, io{t}, if{t}, ic{t} = Split<axis=1, num_outputs=4>(s{t})
    a{t} = Sigmoid(ii{t}) q{t} = Sigmoid(io{t}) e{t} = Sigmoid(if{t}) u{t} = Tanh(ic{t})
    k{t} = Mul(e{t}, {c}) n{t} = Mul(a{t}, u{t}) c{t} = Add(k{t}, n{t})
    m{t} = Tanh(c{t}) h{t} = Mul(q{t}, m{t}) """
GRU = """g{t} = Gemm<transB=1>({x}, ww, wb) p{t} = Gemm<transB=1>({h}, rr, rb)
    gz{t}, gr{t}, gh{t} = Split<axis=1, num_outputs=3>(g{t})
    pz{t}, pr{t}, ph{t} = Split<axis=1, num_outputs=3>(p{t})
    sz{t} = Add(gz{t}, pz{t}) sr{t} = Add(gr{t}, pr{t}) z{t} = Sigmoid(sz{t}) v{t} = Sigmoid(sr{t})
    l{t} = Mul(v{t}, ph{t}) sh{t} = Add(gh{t}, l{t}) n{t} = Tanh(sh{t})
    d{t} = Sub({h}, n{t}) k{t} = Mul(z{t}, d{t}) h{t} = Add(n{t}, k{t}) """

CELLS = {
    "RNN": (RNN, 4, ""),
    "LSTM": (LSTM, 16, ""),
    "GRU": (GRU, 12, ", linear_before_reset = 1"),
}


def _unrolled(op_type: str, *, backward: bool) -> str:
    cell, width, _ = CELLS[op_type]
    times = (1, 0) if backward else (0, 1)
    steps = [
        cell.format(
            t=time,
            x=f"i{time}",
            h="zero" if i == 0 else f"h{times[0]}",
            c="zero" if i == 0 else f"c{times[0]}",
        )
        for i, time in enumerate(times)
    ]
    around = AROUND.format(steps="".join(steps), first=0, second=1, order="f0, f1")
    return HEAD.format(width=width, biases=2 * width) + TAIL + around


def _network(op_type: str, *, backward: bool) -> str:
    _, width, more = CELLS[op_type]
    direction = "reverse" if backward else "forward"
    head = HEAD.format(width=width, biases=2 * width) + TAIL
    return (
        f'{head} {{ y = {op_type}<hidden_size = 4, direction = "{direction}"{more}>(x, w, r, b) }}'
    )


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("op_type", CELLS)
def test_a_network_is_its_steps(op_type: str, backward: bool) -> None:
    unrolled = _unrolled(op_type, backward=backward)
    assert status_of(_network(op_type, backward=backward), unrolled) == "equal"
    assert status_of(_network(op_type, backward=not backward), unrolled) == "differs"
