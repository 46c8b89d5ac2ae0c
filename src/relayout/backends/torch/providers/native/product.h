// Products of matrices, and convolutions as products.
#pragma once
#include "vector.h"

constexpr int64_t SMALLEST = 1 << 19;  // multiplications worth a unit of their own
constexpr int64_t MANY_ROWS = 400, FEW_ROWS = 4 * ROWS;  // of a unit, at the least
constexpr int64_t NEAR = 128 * 1024;  // floats of the left factor that stay in the second cache

// The left factor: where a row begins, and that it is `runs` pieces of `length` floats, `apart` floats from each other.
struct Left {
  const float *data;
  const int32_t *table;
  int64_t stride, runs, length, apart;
  const float *row(int64_t index) const { return data + (table ? table[index] : index * stride); }
};

// An addend of a result: a matrix, or one row for all rows if `apart` is 0.
struct Addend {
  const float *data;
  int64_t apart;
};

// The result, where its sums start, and what happens to a tile of it once it is complete. What the product adds to the
// start can be added to a second matrix as well, which is stored as the start is.
struct Result {
  float *data;
  int64_t stride, width;
  Addend start, residual;
  int64_t activation;
  float low, high;
  float *also = nullptr;
};

// Weights of the next panel, prefetched piece by piece with each tile of this one, without a place in the second cache:
// they are read once and should not evict operands there.
struct Ahead {
  const float *at, *end;
  int64_t lines;  // for each STRIDE of k
};
constexpr int STRIDE = 8;

template <int R, int V, int FIRST>
static inline __attribute__((always_inline)) void step(Vector (&sum)[R][V], const float *const *from, int64_t k,
                                                       const float *panel) {
  Vector b[V];
  for (int v = 0; v < V; v++) b[v] = load(panel + v * LANES);
#pragma GCC unroll 16
  for (int i = 0; i < R; i++) {
    const int r = (FIRST + i) % R;
    Vector a = all(from[r][k]);
    for (int v = 0; v < V; v++) sum[r][v] = plus_product(sum[r][v], a, b[v]);
  }
}

// Rows take turns in being the first. The sums of five rows are wanted again when they are just ready: in the same order
// each time, one that is late makes all of them late.
template <int R, int V, int... TURN>
static inline __attribute__((always_inline)) void steps(Vector (&sum)[R][V], const float *const *from, int64_t k,
                                                        const float *panel, std::integer_sequence<int, TURN...>) {
  (step<R, V, TURN % R>(sum, from, k + TURN, panel + TURN * COLUMNS), ...);
}

template <int V>
static inline void smooth(float *row) {
  Vector x[V];
  for (int v = 0; v < V; v++) x[v] = load(row + v * LANES);
  gelu(x);
  for (int v = 0; v < V; v++) store(row + v * LANES, x[v]);
}

// A place that goes from row to row. The compiler is not to know where it goes: it would compute the places of all rows
// beforehand and keep them in memory, and what surrounds a tile would take longer than a short tile itself.
template <class T>
struct Walk {
  T *at;
  int64_t apart;
  T *next() {
    T *here = at;
    at += apart;
    asm("" : "+r"(at));
    return here;
  }
};

template <int R, int V>
static inline __attribute__((always_inline)) void load_rows(Vector (&sum)[R][V], Walk<const float> &from) {
  for (int r = 0; r < R; r++) {
    const float *row = from.next();
    for (int v = 0; v < V; v++) sum[r][v] = load(row + v * LANES);
  }
}

template <int R, int V>
static inline __attribute__((always_inline)) void add_rows(Vector (&sum)[R][V], Walk<const float> &from) {
  for (int r = 0; r < R; r++) {
    const float *row = from.next();
    for (int v = 0; v < V; v++) sum[r][v] += load(row + v * LANES);
  }
}

template <int R, int V>
static inline __attribute__((always_inline)) void store_rows(const Vector (&sum)[R][V], Walk<float> &to) {
  for (int r = 0; r < R; r++) {
    float *row = to.next();
    for (int v = 0; v < V; v++) store(row + v * LANES, sum[r][v]);
  }
}

template <int R, int V>
static inline __attribute__((always_inline)) void add_change(const Vector (&sum)[R][V], Walk<const float> start,
                                                             Walk<float> &to) {
  for (int r = 0; r < R; r++) {
    const float *before = start.next();
    float *row = to.next();
    for (int v = 0; v < V; v++) store(row + v * LANES, load(row + v * LANES) + (sum[r][v] - load(before + v * LANES)));
  }
}

// Rows of the result, R at a time, and V vectors of their columns: one pass over `runs` x `length` of k.
template <int R, int V, bool SMOOTH>
static void tiles(const Left &left, int64_t at, const float *panel, const Result &result, Share rows, int64_t column,
                  bool first, bool last, Ahead &fetched) {
  const int64_t length = left.length;
  const Addend &residual = result.residual;
  const bool adds = last && residual.data;
  Ahead ahead = fetched;
  Walk<float> to = {result.data + rows.first * result.stride + column, result.stride};
  const int64_t apart = result.start.apart, begins = rows.first * apart + column;
  Walk<const float> start = {to.at, to.apart};
  if (first) start = {result.start.data + begins, apart};
  Walk<float> also = {result.also ? result.also + begins : nullptr, apart};
  Walk<const float> other = {adds ? residual.data + rows.first * residual.apart + column : nullptr, residual.apart};
  Walk<const float> data = {left.data + at + (left.table ? 0 : rows.first * left.stride), left.stride};
  for (int64_t row = rows.first; row < rows.last; row += R) {
    Vector sum[R][V];
    const float *from[R], *weights = panel;
    if (left.table)
      for (int r = 0; r < R; r++) from[r] = data.at + left.table[row + r];
    else
      for (int r = 0; r < R; r++) from[r] = data.next();
    const Walk<const float> begin = start;
    load_rows(sum, start);
    if (adds) {
      Walk<const float> soon = other;
      for (int r = 0; r < R; r++) __builtin_prefetch(soon.next());
    }
    for (int64_t run = left.runs; run > 0; run--) {
      int64_t k = 0;
      for (; k + STRIDE <= length; k += STRIDE) {
        if (ahead.at < ahead.end)
          for (int64_t line = 0; line < ahead.lines; line++, ahead.at += 16) __builtin_prefetch(ahead.at, 0, 0);
        steps(sum, from, k, weights, std::make_integer_sequence<int, STRIDE>());
        weights += STRIDE * COLUMNS;
      }
#pragma GCC unroll 1
      for (; k < length; k++, weights += COLUMNS) step<R, V, 0>(sum, from, k, weights);
      if (run > 1)
        for (int r = 0; r < R; r++) from[r] += left.apart;
    }
    if (result.also) add_change(sum, begin, also);
    if (adds) add_rows(sum, other);
    if (last && !SMOOTH) {
      const Vector low = all(result.low), high = all(result.high);
      for (int r = 0; r < R; r++)
        for (int v = 0; v < V; v++) sum[r][v] = smaller(high, larger(low, sum[r][v]));
    }
    Walk<float> done = to;
    store_rows(sum, to);
    if (SMOOTH && last)
#pragma GCC unroll 1
      for (int r = 0; r < R; r++) smooth<V>(done.next());
  }
  fetched = ahead;
}

typedef void (*Tiles)(const Left &, int64_t, const float *, const Result &, Share, int64_t, bool, bool, Ahead &);
template <int V, bool SMOOTH> struct Table {
  Tiles of[ROWS + 1] = {nullptr, tiles<1, V, SMOOTH>, tiles<2, V, SMOOTH>, tiles<3, V, SMOOTH>,
                        tiles<4, V, SMOOTH>, tiles<5, V, SMOOTH>, tiles<6, V, SMOOTH>};
};
static const Table<1, false> narrow;
static const Table<2, false> wide;
static const Table<1, true> narrow_smooth;
static const Table<2, true> wide_smooth;

static inline const Tiles *wide_tiles(const Result &result) { return result.activation == GELU ? wide_smooth.of : wide.of; }
static inline const Tiles *narrow_tiles(const Result &result) {
  return result.activation == GELU ? narrow_smooth.of : narrow.of;
}

// Tiles whose columns do not fill their last vector go through a buffer.
static void edge(const Left &left, int64_t at, const float *panel, const Result &result, Share rows, int64_t height,
                 int64_t column, bool first, bool last) {
  int64_t width = result.width - column;
  Ahead nothing = {panel, panel, 0};
  for (int64_t row = rows.first; row < rows.last; row += height) {
    float out[ROWS * COLUMNS] = {}, more[ROWS * COLUMNS] = {};
    int32_t table[ROWS];
    for (int64_t r = 0; r < height; r++) {
      int64_t place = (row + r) * result.stride + column;
      memcpy(out + r * COLUMNS, result.data + place, width * sizeof(float));
      if (result.residual.data)
        memcpy(more + r * COLUMNS, result.residual.data + (row + r) * result.residual.apart + column, width * sizeof(float));
      table[r] = (int32_t)(left.row(row + r) - left.data);
    }
    Addend start = {result.start.data + row * result.start.apart + column, result.start.apart};
    Addend residual = {result.residual.data ? more : nullptr, COLUMNS};
    Result part = {out, COLUMNS, COLUMNS, start, residual, result.activation, result.low, result.high};
    Left part_rows = left;
    part_rows.table = table;
    wide_tiles(result)[height](part_rows, at, panel, part, Share(0, height), 0, first, last, nothing);
    for (int64_t r = 0; r < height; r++)
      memcpy(result.data + (row + r) * result.stride + column, out + r * COLUMNS, width * sizeof(float));
  }
}

// Rows as tiles of nearly the same height, the higher ones first.
struct Heights {
  int64_t lower, middle;  // the height of the lower ones, which begin there
  explicit Heights(Share rows) : lower(ROWS - 1) {
    int64_t count = parts(rows.last - rows.first, ROWS), lower_ones = rows.first + count * ROWS - rows.last;
    for (; lower_ones > count; lower_ones -= count) lower--;
    middle = rows.last - lower_ones * lower;
  }
};

static void pass(const Left &left, int64_t at, const float *panels, int64_t panel_size, const Result &result,
                 Share rows, Share panels_of, bool first, bool last, bool is_cold) {
  if (rows.first == rows.last) return;
  Heights heights(rows);
  int64_t count = parts(rows.last - rows.first, ROWS), strides = most(1, panel_size / (COLUMNS * STRIDE));
  // One row of tiles reads weights one after the other, and faster if none are fetched ahead.
  int64_t lines = is_cold && count > 1 ? parts(panel_size, 16 * strides * count) : 0;
  for (int64_t panel = panels_of.first; panel < panels_of.last; panel++) {
    int64_t column = panel * COLUMNS, width = result.width - column;
    const float *weights = panels + panel * panel_size, *next = weights + panel_size;
    Ahead ahead = {next, next + (lines ? panel_size : 0), lines};
    for (auto [share, height] : {std::pair(Share(rows.first, heights.middle), heights.lower + 1),
                                 std::pair(Share(heights.middle, rows.last), heights.lower)}) {
      if (share.first == share.last) continue;
      if (width >= COLUMNS) wide_tiles(result)[height](left, at, weights, result, share, column, first, last, ahead);
      else if (width == LANES) narrow_tiles(result)[height](left, at, weights, result, share, column, first, last, ahead);
      else edge(left, at, weights, result, share, height, column, first, last);
    }
  }
}

// How the rows of the right factor are cut into passes: pieces of runs, or all at once.
struct Passes {
  const Left &left;
  bool whole;
  int64_t pieces, count;
  explicit Passes(const Left &left)
      : left(left), whole(left.runs * left.length <= DEEPEST), pieces(whole ? 1 : parts(left.length, DEEPEST)),
        count(whole ? 1 : left.runs * pieces) {}
  int64_t begin(int64_t piece) const { return left.length * piece / pieces; }
  int64_t depth(int64_t pass) const {
    return whole ? left.runs * left.length : begin(pass % pieces + 1) - begin(pass % pieces);
  }
  // The part of the left factor, and where in its rows it begins.
  Left part(int64_t pass) const {
    Left part = left;
    if (!whole) part.runs = 1, part.length = depth(pass);
    return part;
  }
  int64_t at(int64_t pass) const { return whole ? 0 : pass / pieces * left.apart + begin(pass % pieces); }
  int64_t row(int64_t pass) const { return whole ? 0 : pass / pieces * left.length + begin(pass % pieces); }
};

// The result's rows and panels that fall to one thread. The right factor is packed in passes, panels and rows. Of the
// left factor and the result the larger one is gone through once.
static void product(const Left &left, const float *right, const Result &result, Share rows, Share panels) {
  Passes passes(left);
  int64_t all_panels = parts(result.width, COLUMNS), depth = left.runs * left.length;
  int64_t breadth = least(result.width, (panels.last - panels.first) * COLUMNS);
  bool by_panels = passes.count > 1 && breadth > depth;
  int64_t near = by_panels ? depth : breadth + (passes.whole ? depth : left.length / passes.pieces);
  int64_t block = most(ROWS, NEAR / near / ROWS * ROWS);
  for (int64_t row = rows.first; row < rows.last; row += block) {
    Share block_rows(row, least(rows.last, row + block));
    auto go = [&](int64_t p, Share some) {
      const float *weights = right + passes.row(p) * all_panels * COLUMNS;
      pass(passes.part(p), passes.at(p), weights, passes.depth(p) * COLUMNS, result, block_rows, some, p == 0,
           p == passes.count - 1, row == rows.first);
    };
    if (!by_panels) {
      for (int64_t p = 0; p < passes.count; p++) go(p, panels);
      continue;
    }
    for (int64_t panel = panels.first; panel < panels.last; panel++)
      for (int64_t p = 0; p < passes.count; p++) go(p, Share(panel, panel + 1));
  }
}

// How a product is cut for several threads. Each has rows of its own, which the next step finds in its cache; that
// costs less than weights that all of them read. Few rows are cut by panels as well, so that others can help.
struct Cut {
  int64_t rows, panels, by_rows, by_panels;
  Cut(const Step &s, int team) : rows(s.batch * s.out_height * s.out_width), panels(parts(s.out_depth, COLUMNS)) {
    int64_t work = rows * s.out_depth * s.depth * s.kernel_height * s.kernel_width;
    int64_t wanted = team == 1 ? 1 : most(1, least(4 * team, work / SMALLEST));
    by_rows = most(1, least(rows >= MANY_ROWS ? wanted : team, rows / FEW_ROWS));
    by_panels = least(panels, parts(wanted, by_rows));
  }
};

// A convolution as a product: each row of the kernel is a run, for the operand has its border around it.
static void convolution(const Step &s, int64_t unit, int team) {
  Cut cut(s, team);
  Left left = {s.input, s.table, s.depth, s.kernel_height, s.kernel_width * s.depth, s.width * s.depth};
  Result result = {s.output, s.out_depth, s.out_depth, {s.bias, 0}, {s.residual, s.out_depth}, s.activation, s.low, s.high};
  product(left, s.weight, result, Share(cut.rows, unit / cut.by_panels, cut.by_rows),
          Share(cut.panels, unit % cut.by_panels, cut.by_panels));
}
