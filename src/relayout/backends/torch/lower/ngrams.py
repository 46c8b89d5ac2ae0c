"""Counts of n-grams."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from relayout.backends.torch.program.call import Call, Lowering
from relayout.backends.torch.runtime import lookup as runtime


def vectorizer(call: Call) -> str:
    """Tokens get the places they have in a vocabulary, and n-grams numbers made of these."""
    pool = np.array(call.ints("pool_int64s") or (), np.int64)
    columns = np.array(call.ints("ngram_indexes") or (), np.int64)
    if not pool.size:
        raise call.refusal("counts n-grams of strings, of which torch has no tensors")
    length = int(columns.max()) + 1
    tokens = np.unique(pool)
    sizes = [
        _finder(call, np.searchsorted(tokens, grams), len(tokens), own, length)
        for grams, own in _grams(call, pool, columns)
    ]
    skips = call.integer("max_skip_count", 0)
    given = (call.tensor(0), call.table(tokens, "tokens"), f"[{', '.join(sizes)}]", length, skips)
    return _weighted(call, call.helper(runtime.ngram_counts, *given), columns)


def _grams(
    call: Call, pool: NDArray[np.int64], columns: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The n-grams of each size that counts, and the columns they count in."""
    starts = call.ints("ngram_counts") or ()
    counted = range(call.integer("min_gram_length", 1), call.integer("max_gram_length", 1) + 1)
    first = 0
    for size, (start, end) in enumerate(zip(starts, (*starts[1:], len(pool)), strict=True), 1):
        grams = pool[start:end].reshape(-1, size)
        if size in counted and len(grams):
            yield grams, columns[first : first + len(grams)]
        first += len(grams)


def _finder(
    call: Call, grams: NDArray[np.int64], tokens: int, columns: NDArray[np.int64], length: int
) -> str:
    """Tables of how n-grams go on after one, two, … tokens, and the columns they count in."""
    found, known, tables = grams[:, 0], tokens, []
    for place in range(1, grams.shape[1]):
        keys = found * tokens + grams[:, place]
        table = np.unique(keys)
        found, known = np.searchsorted(table, keys), len(table)
        tables.append(call.table(table, "ngrams"))
    own = np.full(known + 1, length, np.int64)
    own[found] = columns
    return f"([{', '.join(tables)}], {call.table(own, 'columns')})"


def _weighted(call: Call, counts: str, columns: NDArray[np.int64]) -> str:
    mode = call.string("mode", "TF")
    if mode not in {"TF", "IDF", "TFIDF"}:
        raise call.refusal(f"has the unknown mode {mode!r}")
    shown = f"({counts} > 0).to(torch.float32)" if mode == "IDF" else counts
    given = call.view.floats("weights")
    if mode == "TF" or not given:
        return shown
    weights = np.array(given, np.float32)
    if len(weights) <= columns.max() or (weights[columns] != weights[: len(columns)]).any():
        # By the standard they are those of n-grams, for its reference those of columns.
        raise call.refusal("has weights in another order than its results")
    return f"{shown} * {call.table(weights[: int(columns.max()) + 1], 'weights')}"


LOWERINGS: dict[str, Lowering] = {"TfIdfVectorizer": vectorizer}
