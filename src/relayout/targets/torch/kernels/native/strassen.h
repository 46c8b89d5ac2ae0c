// Products with seven multiplications of quarters where eight were, in the form of Strassen and Winograd.
//
//   C11 = A11 B11 + A12 B21                      C12 = U + S1 T1 + S4 B22
//   C21 = U + S3 T3 - A22 T4                     C22 = U + S3 T3 + S1 T1       U = A11 B11 + S2 T2
//
// The sums S of the left factor are made once, in the first phase. Those of the right factor are made when weights
// are packed: for each panel of the left half of the result seven blocks, in the order in which they are read here.
#pragma once
#include "product.h"

struct Quarters {
  int64_t rows, depth, width, apart;
  explicit Quarters(const Step &s)
      : rows(s.batch * s.out_height * s.out_width / 2), depth(s.depth / 2), width(s.out_depth / 2), apart(depth + COLUMNS) {}
  const float *sum(const Step &s, int index) const { return s.scratch + index * rows * apart; }
};

static void strassen_sums(const Step &s, Share rows) {
  Quarters q(s);
  for (int64_t row = rows.first; row < rows.last; row++) {
    const float *upper = s.input + row * s.depth, *lower = upper + q.rows * s.depth;
    float *to = s.scratch + row * q.apart;
    const int64_t next = q.rows * q.apart;
    for (int64_t k = 0; k < q.depth; k += LANES) {
      Vector a11 = load(upper + k), a12 = load(upper + q.depth + k), a21 = load(lower + k), a22 = load(lower + q.depth + k);
      Vector s1 = a21 + a22, s2 = s1 - a11;
      store(to + k, s1);
      store(to + next + k, s2);
      store(to + 2 * next + k, a11 - a21);
      store(to + 3 * next + k, a12 - s2);
    }
  }
}

static inline Vector finished(const Step &s, Vector x) {
  return s.activation == GELU ? gelu(x) : smaller(all(s.high), larger(all(s.low), x));
}

// One panel of both halves of the result. Sums of products wait in memory of the thread.
static void strassen_panel(const Step &s, int64_t panel) {
  Quarters q(s);
  const int64_t column = panel * COLUMNS, size = q.depth * COLUMNS, held = q.rows * COLUMNS;
  float *u = own_memory(3 * held + COLUMNS), *v = u + held, *w = v + held, *change = w + held;
  for (int i = 0; i < COLUMNS; i++) change[i] = s.bias[q.width + column + i] - s.bias[column + i];
  const float *weights = s.weight + panel * 7 * size;
  const Share rows(0, q.rows), one(0, 1);
  auto add = [&](const float *left, int64_t stride, Addend start, Addend more, float *to) {
    Result result = {to, COLUMNS, COLUMNS, start, more, CLIP, -INFINITE, INFINITE};
    product({left, nullptr, stride, 1, q.depth, 0}, weights, result, rows, one);
    weights += size;
  };
  auto finish = [&](const float *left, int64_t stride, const float *start, int64_t place) {
    Addend residual = {s.residual ? s.residual + place : nullptr, s.out_depth};
    Result result = {s.output + place, s.out_depth, COLUMNS, {start, COLUMNS}, residual, s.activation, s.low, s.high};
    product({left, nullptr, stride, 1, q.depth, 0}, weights, result, rows, one);
    weights += size;
  };
  const float *a11 = s.input, *a12 = a11 + q.depth, *a22 = a12 + q.rows * s.depth;
  const int64_t c11 = column, c12 = c11 + q.width, c21 = c11 + q.rows * s.out_depth, c22 = c21 + q.width;
  add(a11, s.depth, {s.bias + column, 0}, {}, u);
  finish(a12, s.depth, u, c11);
  add(q.sum(s, 1), q.apart, {u, COLUMNS}, {}, u);
  add(q.sum(s, 0), q.apart, {u, COLUMNS}, {change, 0}, v);
  finish(q.sum(s, 3), q.apart, v, c12);
  add(q.sum(s, 2), q.apart, {ZEROS, 0}, {}, w);
  for (int64_t row = 0; row < q.rows; row++)
    for (int64_t i = row * COLUMNS; i < (row + 1) * COLUMNS; i += LANES) {
      int64_t place = c22 + row * s.out_depth + i % COLUMNS;
      Vector x = load(v + i) + load(w + i);
      if (s.residual) x += load(s.residual + place);
      store(s.output + place, finished(s, x));
      store(u + i, load(u + i) + load(w + i));
    }
  finish(a22, s.depth, u, c21);
}
