// Products of matrices, and convolutions as products.
#pragma once
#include "vector.h"

constexpr int64_t DEEPEST = 320;     // of one pass over k: a panel of the right factor stays in the first cache
constexpr int64_t SMALLEST = 1 << 19;  // multiplications worth a unit of their own
constexpr int64_t MANY_ROWS = 400;
constexpr int64_t NEAR = 128 * 1024;  // floats of the left factor that stay in the second cache

// The left factor: where a row begins, and that it is `runs` pieces of `length` floats, `apart` floats from each other.
struct Left {
  const float *data;
  const int32_t *table;
  int64_t stride, runs, length, apart;
  const float *row(int64_t index) const { return data + (table ? table[index] : index * stride); }
};

// The result, and what happens to a tile of it once it is complete.
struct Result {
  float *data;
  int64_t stride, width;
  const float *bias, *residual;
  int64_t activation;
  float low, high;
};

// Weights of the next panel, fetched a little with each tile of this one.
struct Ahead {
  const float *at;
  int64_t lines;  // for each STRIDE of k
};
constexpr int STRIDE = 8;

template <int R, int V>
static inline __attribute__((always_inline)) void step(Vector (&sum)[R][V], const float *const *from, int64_t k,
                                                       const float *panel) {
  Vector b[V];
  for (int v = 0; v < V; v++) b[v] = load(panel + v * LANES);
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    Vector a = all(from[r][k]);
    for (int v = 0; v < V; v++) sum[r][v] += a * b[v];
  }
}

// R rows and V vectors of the result: one pass over `runs` x `length` of k.
template <int R, int V, bool SMOOTH>
static void tile(const Left &left, int64_t at, const float *panel, const Result &result, int64_t row, int64_t column,
                 bool first, bool last, Ahead ahead) {
  Vector sum[R][V];
  const float *from[R];
  float *to = result.data + row * result.stride + column;
  for (int r = 0; r < R; r++) {
    from[r] = left.row(row + r) + at;
    for (int v = 0; v < V; v++)
      sum[r][v] = load((first ? result.bias + column : to + r * result.stride) + v * LANES);
  }
  if (last && result.residual)
    for (int r = 0; r < R; r++) __builtin_prefetch(result.residual + (row + r) * result.stride + column);
  if (first)
    for (int r = 0; r < R; r++) __builtin_prefetch(to + r * result.stride, 1);
  for (int64_t run = 0; run < left.runs; run++) {
    int64_t k = 0;
    for (; k + STRIDE <= left.length; k += STRIDE) {
      for (int64_t line = 0; line < ahead.lines; line++, ahead.at += 16) __builtin_prefetch(ahead.at);
#pragma GCC unroll 8
      for (int i = 0; i < STRIDE; i++, panel += COLUMNS) step<R, V>(sum, from, k + i, panel);
    }
#pragma GCC unroll 1
    for (; k < left.length; k++, panel += COLUMNS) step<R, V>(sum, from, k, panel);
    for (int r = 0; r < R; r++) from[r] += left.apart;
  }
  if (last && result.residual)
    for (int r = 0; r < R; r++)
      for (int v = 0; v < V; v++)
        sum[r][v] += load(result.residual + (row + r) * result.stride + column + v * LANES);
  if (last && !SMOOTH) {
    Vector low = all(result.low), high = all(result.high);
    for (int r = 0; r < R; r++)
      for (int v = 0; v < V; v++) sum[r][v] = smaller(high, larger(low, sum[r][v]));
  }
  if (last && SMOOTH)
    for (int r = 0; r < R; r++)
      for (int v = 0; v < V; v++) sum[r][v] = gelu(sum[r][v]);
  for (int r = 0; r < R; r++)
    for (int v = 0; v < V; v++) store(to + r * result.stride + v * LANES, sum[r][v]);
}

typedef void (*Tile)(const Left &, int64_t, const float *, const Result &, int64_t, int64_t, bool, bool, Ahead);
template <int V, bool SMOOTH> struct Tiles {
  Tile of[ROWS + 1] = {nullptr, tile<1, V, SMOOTH>, tile<2, V, SMOOTH>, tile<3, V, SMOOTH>,
                       tile<4, V, SMOOTH>, tile<5, V, SMOOTH>, tile<6, V, SMOOTH>};
};
static const Tiles<1, false> narrow;
static const Tiles<2, false> wide;
static const Tiles<1, true> narrow_smooth;
static const Tiles<2, true> wide_smooth;

static inline const Tile *wide_tiles(const Result &result) { return result.activation == GELU ? wide_smooth.of : wide.of; }
static inline const Tile *narrow_tiles(const Result &result) {
  return result.activation == GELU ? narrow_smooth.of : narrow.of;
}

// A tile whose columns do not fill their last vector goes through a buffer.
static void edge(const Left &left, int64_t at, const float *panel, const Result &result, int64_t row, int64_t count,
                 int64_t column, bool first, bool last) {
  float out[ROWS * COLUMNS] = {}, more[ROWS * COLUMNS] = {};
  int64_t width = result.width - column;
  for (int64_t r = 0; r < count; r++) {
    memcpy(out + r * COLUMNS, result.data + (row + r) * result.stride + column, width * 4);
    if (result.residual) memcpy(more + r * COLUMNS, result.residual + (row + r) * result.stride + column, width * 4);
  }
  Result part = {out, COLUMNS, COLUMNS, result.bias + column,
                 result.residual ? more : nullptr, result.activation, result.low, result.high};
  Left rows = left;
  int32_t table[ROWS];
  for (int64_t r = 0; r < count; r++) table[r] = (int32_t)(left.row(row + r) - left.data);
  rows.table = table;
  wide_tiles(result)[count](rows, at, panel, part, 0, 0, first, last, {panel, 0});
  for (int64_t r = 0; r < count; r++)
    memcpy(result.data + (row + r) * result.stride + column, out + r * COLUMNS, width * 4);
}

static void pass(const Left &left, int64_t at, const float *panels, int64_t panel_size, const Result &result,
                 Share rows, Share panels_of, bool first, bool last) {
  int64_t count = rows.last - rows.first, tiles = parts(count, ROWS);
  for (int64_t panel = panels_of.first; panel < panels_of.last; panel++) {
    int64_t column = panel * COLUMNS, width = result.width - column;
    const float *weights = panels + panel * panel_size;
    int64_t strides = parts(panel_size, COLUMNS * STRIDE), lines = parts(panel_size, 16 * strides * tiles);
    for (int64_t t = 0; t < tiles; t++) {
      int64_t row = rows.first + count * t / tiles, end = rows.first + count * (t + 1) / tiles;
      int64_t fetched = t * strides * lines * 16;
      Ahead ahead = {weights + panel_size + fetched, fetched < panel_size ? lines : 0};
      if (width >= COLUMNS) wide_tiles(result)[end - row](left, at, weights, result, row, column, first, last, ahead);
      else if (width == LANES) narrow_tiles(result)[end - row](left, at, weights, result, row, column, first, last, ahead);
      else edge(left, at, weights, result, row, end - row, column, first, last);
    }
  }
}

// The result's rows and panels that fall to one thread. The right factor is packed by `pack` in the module beside this.
static void product(const Left &left, const float *right, const Result &result, Share rows, Share panels) {
  int64_t all_panels = parts(result.width, COLUMNS), depth = left.runs * left.length;
  bool whole = depth <= DEEPEST;
  int64_t pieces = whole ? 1 : parts(left.length, DEEPEST), passes = whole ? 1 : left.runs * pieces;
  int64_t breadth = least(result.width, (panels.last - panels.first) * COLUMNS);
  int64_t block = most(ROWS, NEAR / (breadth + (whole ? depth : left.length / pieces)) / ROWS * ROWS);
  for (int64_t row = rows.first; row < rows.last; row += block) {
    Share block_rows(row, least(rows.last, row + block));
    for (int64_t p = 0; p < passes; p++) {
      int64_t run = p / pieces, piece = p % pieces;
      int64_t begin = whole ? 0 : left.length * piece / pieces;
      int64_t length = whole ? left.length : left.length * (piece + 1) / pieces - begin;
      Left part = left;
      if (!whole) part.runs = 1, part.length = length;
      int64_t size = part.runs * length * COLUMNS;
      const float *begin_panels = right + (whole ? 0 : (run * left.length + begin) * all_panels * COLUMNS);
      pass(part, run * left.apart + begin, begin_panels, size, result, block_rows, panels, p == 0, p == passes - 1);
    }
  }
}

// How a product is cut for several threads: many rows by rows, few rows by panels of the right factor.
struct Cut {
  int64_t rows, panels, by_rows, by_panels;
  Cut(const Step &s, int team) : rows(s.batch * s.out_height * s.out_width), panels(parts(s.out_depth, COLUMNS)) {
    int64_t work = rows * s.out_depth * s.depth * s.kernel_height * s.kernel_width;
    int64_t wanted = team == 1 ? 1 : most(1, least(4 * team, work / SMALLEST));
    by_panels = rows >= MANY_ROWS ? 1 : least(panels, wanted);
    by_rows = most(1, least(parts(wanted, by_panels), rows / (2 * ROWS)));
  }
};

// A convolution as a product: each row of the kernel is a run, for the operand has its border around it.
static void convolution(const Step &s, int64_t unit, int team) {
  Cut cut(s, team);
  Left left = {s.input, s.table, s.depth, s.kernel_height, s.kernel_width * s.depth, s.width * s.depth};
  Result result = {s.output, s.out_depth, s.out_depth, s.bias, s.residual, s.activation, s.low, s.high};
  product(left, s.weight, result, Share(cut.rows, unit / cut.by_panels, cut.by_rows),
          Share(cut.panels, unit % cut.by_panels, cut.by_panels));
}
