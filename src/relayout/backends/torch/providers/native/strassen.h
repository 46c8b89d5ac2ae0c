// Products with seven multiplications of quarters instead of eight, in the form of Strassen and Winograd.
//
//   C11 = A11 B11 + A12 B21                      C12 = U + S1 T1 + S4 B22
//   C21 = U + S3 T3 - A22 T4                     C22 = U + S3 T3 + S1 T1       U = A11 B11 + S2 T2
//
// The sums S of the left factor are made once, before the products. Those of the right factor are made when weights
// are packed: for each panel of the left half of the result seven blocks, in the order in which they are read here.
#pragma once
#include "product.h"

// What is multiplied at a time: some channels of one pixel of each window, and added to what was there before. The sums
// of more would not stay in the cache.
struct Slices {
  int64_t parts_of_pixel, count;
  explicit Slices(const Step &s)
      : parts_of_pixel(parts(s.depth, 2 * DEEPEST)), count(s.kernel_height * s.kernel_width * parts_of_pixel) {}
  int64_t pixel(int64_t index) const { return index / parts_of_pixel; }
  Share channels(const Step &s, int64_t index) const {
    Share columns(s.depth / COLUMNS, index % parts_of_pixel, parts_of_pixel);
    return Share(columns.first * COLUMNS, columns.last * COLUMNS);
  }
};

// Some rows of the product and one of its slices, by quarters. Of an odd number of rows the upper half has one more;
// below it are zeros.
struct Quarters {
  int64_t first, upper, lower, depth, width, apart;
  const float *input, *weight;
  bool is_first, is_last;
  Quarters(const Step &s, Share rows, int64_t slice)
      : first(rows.first), upper(parts(rows.last - rows.first, 2)), lower(rows.last - rows.first - upper),
        width(s.out_depth / 2), is_first(slice == 0), is_last(slice + 1 == Slices(s).count) {
    Share channels = Slices(s).channels(s, slice);
    int64_t pixel = Slices(s).pixel(slice), down = pixel / s.kernel_width, across = pixel % s.kernel_width;
    depth = (channels.last - channels.first) / 2, apart = depth + COLUMNS;
    input = s.input + (down * s.width + across) * s.depth + channels.first;
    weight = s.weight + 7 * (pixel * s.depth + channels.first) / 2 * width;
  }
  int64_t sums() const { return 4 * upper * apart; }
  int64_t held() const { return upper * COLUMNS; }
  // The operand from one of these rows and one of these columns on.
  Left left(const Step &s, int64_t row, int64_t column) const {
    if (s.table) return {input + column, s.table + first + row, 0, 1, depth, 0};
    return {input + (first + row) * s.depth + column, nullptr, s.depth, 1, depth, 0};
  }
};

static void strassen_sums(const Step &s, const Quarters &q, Share rows, float *sums) {
  const int64_t next = q.upper * q.apart;
  const Left left = q.left(s, 0, 0);
  for (int64_t row = rows.first; row < rows.last; row++) {
    const float *above = left.row(row), *below = row < q.lower ? left.row(q.upper + row) : ZEROS;
    float *to = sums + row * q.apart;
    for (int64_t k = 0; k < q.depth; k += LANES) {
      Vector a11 = load(above + k), a12 = load(above + q.depth + k), a21 = load(below + k), a22 = load(below + q.depth + k);
      Vector s1 = a21 + a22, s2 = s1 - a11;
      store(to + k, s1);
      store(to + next + k, s2);
      store(to + 2 * next + k, a11 - a21);
      store(to + 3 * next + k, a12 - s2);
    }
  }
}

// One panel of both halves of the result. Sums of products wait in memory of the thread.
static void strassen_panel(const Step &s, const Quarters &q, const float *sums, int64_t panel, float *memory) {
  const int64_t column = panel * COLUMNS, size = q.depth * COLUMNS, next = q.upper * q.apart;
  float *u = memory, *v = u + q.held(), *change = v + q.held();
  for (int i = 0; i < COLUMNS; i++) change[i] = q.is_first ? s.bias[q.width + column + i] - s.bias[column + i] : 0;
  const float *before = q.is_first ? s.residual : s.output, *weights = q.weight + panel * 7 * size;
  const float low = q.is_last ? s.low : -INFINITE, high = q.is_last ? s.high : INFINITE;
  const int64_t activation = q.is_last ? s.activation : CLIP;
  auto add = [&](const Left &left, Addend start, Addend more, float *to) {
    Result result = {to, COLUMNS, COLUMNS, start, more, CLIP, -INFINITE, INFINITE};
    pass(left, 0, weights, size, result, Share(0, q.upper), Share(0, 1), true, true, true);
    weights += size;
  };
  auto finish = [&](const Left &left, const float *start, int64_t place, int64_t rows, float *also = nullptr) {
    Addend residual = {before ? before + place : nullptr, s.out_depth};
    Result result = {s.output + place, s.out_depth, COLUMNS, {start, COLUMNS}, residual, activation, low, high, also};
    pass(left, 0, weights, size, result, Share(0, rows), Share(0, 1), true, true, true);
    weights += size;
  };
  auto sum = [&](int64_t index) { return Left{sums + index * next, nullptr, q.apart, 1, q.depth, 0}; };
  const int64_t c11 = q.first * s.out_depth + column, c12 = c11 + q.width;
  const int64_t c21 = c11 + q.upper * s.out_depth, c22 = c21 + q.width;
  add(q.left(s, 0, 0), {q.is_first ? s.bias + column : ZEROS, 0}, {}, u);
  finish(q.left(s, 0, q.depth), u, c11, q.upper);
  add(sum(1), {u, COLUMNS}, {}, u);
  add(sum(0), {u, COLUMNS}, {change, 0}, v);
  finish(sum(3), v, c12, q.upper);
  finish(sum(2), v, c22, q.lower, u);
  finish(q.left(s, q.upper, q.depth), u, c21, q.lower);
}

// Rows are shared out in blocks, whose sums stay in the cache of one thread, as does what was computed of these rows
// before. Where blocks would be small, the sums are made together, and then panels are shared out.
struct Halving {
  int64_t rows, count, panels;
  bool is_by_panels;
  Halving(const Step &s, int team) : rows(s.batch * s.out_height * s.out_width), panels(s.out_depth / 2 / COLUMNS) {
    is_by_panels = rows <= MOST_ROWS && rows < team * FEWEST;
    count = parts(rows, team * BLOCK) * team;
  }
  static constexpr int64_t BLOCK = 196, FEWEST = 64;  // rows of a block, at the most and at the least
};

static int64_t strassen_phases(const Step &s, int team) { return Halving(s, team).is_by_panels ? 2 : 1; }

static int64_t strassen_units(const Step &s, int64_t phase, int team) {
  Halving halving(s, team);
  if (!halving.is_by_panels) return halving.count;
  return phase == 0 ? least(parts(halving.rows, 2), 4 * team) : halving.panels;
}

// The rows of a thread, slice by slice.
static void strassen_block(const Step &s, Share rows, int64_t panels) {
  for (int64_t slice = 0; slice < Slices(s).count; slice++) {
    Quarters q(s, rows, slice);
    float *sums = own_memory(q.sums() + 2 * q.held() + COLUMNS);
    strassen_sums(s, q, Share(0, q.upper), sums);
    for (int64_t panel = 0; panel < panels; panel++) strassen_panel(s, q, sums, panel, sums + q.sums());
  }
}

static void strassen(const Step &s, int64_t phase, int64_t unit, int team) {
  Halving halving(s, team);
  if (!halving.is_by_panels) return strassen_block(s, Share(halving.rows, unit, halving.count), halving.panels);
  float *sums = s.scratch;
  for (int64_t slice = 0; slice < Slices(s).count; slice++) {
    Quarters q(s, Share(0, halving.rows), slice);
    if (phase == 0) strassen_sums(s, q, Share(q.upper, unit, strassen_units(s, 0, team)), sums);
    else strassen_panel(s, q, sums, unit, own_memory(2 * q.held() + COLUMNS));
    sums += q.sums();
  }
}
