// 3x3 convolutions by Winograd's F(4x4, 3x3), with 36 multiplications where 144 were, or by F(2x2, 3x3), with 16
// where 36 were and less than half the weights.
#pragma once
#include "product.h"

static inline __attribute__((always_inline)) void into(const Vector (&d)[6], Vector (&to)[6]) {
  Vector even = d[4] - 4.0f * d[2], odd = d[3] - 4.0f * d[1], far = d[4] - d[2], near = 2.0f * (d[3] - d[1]);
  to[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
  to[1] = even + odd;
  to[2] = even - odd;
  to[3] = far + near;
  to[4] = far - near;
  to[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
}

static inline __attribute__((always_inline)) void into(const Vector (&d)[4], Vector (&to)[4]) {
  to[0] = d[0] - d[2];
  to[1] = d[1] + d[2];
  to[2] = d[2] - d[1];
  to[3] = d[1] - d[3];
}

static inline __attribute__((always_inline)) void out_of(const Vector (&m)[6], Vector (&y)[4]) {
  Vector s1 = m[1] + m[2], d1 = m[1] - m[2], s2 = m[3] + m[4], d2 = m[3] - m[4];
  y[0] = m[0] + s1 + s2;
  y[1] = d1 + 2.0f * d2;
  y[2] = s1 + 4.0f * s2;
  y[3] = d1 + 8.0f * d2 + m[5];
}

static inline __attribute__((always_inline)) void out_of(const Vector (&m)[4], Vector (&y)[2]) {
  y[0] = m[0] + m[1] + m[2];
  y[1] = m[1] - m[2] - m[3];
}

// Results as tiles of OUT x OUT, each made from IN x IN pixels.
template <int OUT> struct Grid {
  static constexpr int IN = OUT + 2, MATRICES = IN * IN;
  int64_t across, down, count;
  explicit Grid(const Step &s)
      : across(parts(s.out_width, OUT)), down(parts(s.out_height, OUT)), count(s.batch * across * down) {}
};

// Tiles as the products read them: matrices with a row per tile. Rows lie a little apart, for reads from rows that
// begin at the same place of their pages get in each other's way; so do matrices, for a tile writes to them all.
struct Transformed {
  float *data;
  int64_t row, matrix;
  Transformed(float *data, int64_t depth, int64_t tiles)
      : data(data), row(depth + COLUMNS), matrix((parts(tiles * row, COLUMNS) | 1) * COLUMNS) {}
};

template <int OUT>
static void transform_in(const Step &s, const Grid<OUT> &grid, int64_t tile, float *to, int64_t apart) {
  constexpr int IN = Grid<OUT>::IN;
  const float *from[IN * IN];
  int64_t image = tile / (grid.across * grid.down), place = tile % (grid.across * grid.down);
  int64_t top = place / grid.across * OUT - s.pad_top, left = place % grid.across * OUT - s.pad_left;
  for (int i = 0; i < IN * IN; i++) {
    int64_t y = top + i / IN, x = left + i % IN;
    bool inside = y >= 0 && y < s.height && x >= 0 && x < s.width;
    from[i] = inside ? s.input + ((image * s.height + y) * s.width + x) * s.depth : ZEROS;
  }
  for (int64_t c = 0; c < s.depth; c += LANES) {
    Vector half[IN][IN], line[IN], done[IN];  // by columns, then by rows
#pragma GCC unroll 6
    for (int x = 0; x < IN; x++) {
#pragma GCC unroll 6
      for (int y = 0; y < IN; y++) line[y] = load(from[y * IN + x] + c);
      into(line, half[x]);
    }
    float *at = to + c;
#pragma GCC unroll 6
    for (int y = 0; y < IN; y++) {
#pragma GCC unroll 6
      for (int x = 0; x < IN; x++) line[x] = half[x][y];
      into(line, done);
#pragma GCC unroll 6
      for (int x = 0; x < IN; x++, at += apart) store(at, done[x]);
    }
  }
}

template <int OUT>
static void transform_in(const Step &s, const Grid<OUT> &grid, Share tiles, const Transformed &to, int64_t first) {
  for (int64_t t = tiles.first; t < tiles.last; t++)
    transform_in(s, grid, t, to.data + (t - first) * to.row, to.matrix);
}

// One tile of the result, `depth` channels from `channel` on.
template <int OUT>
static void transform_out(const Step &s, const Grid<OUT> &grid, int64_t tile, int64_t channel, int64_t depth,
                          const float *from, int64_t apart) {
  constexpr int IN = Grid<OUT>::IN;
  int64_t image = tile / (grid.across * grid.down), place = tile % (grid.across * grid.down);
  int64_t top = place / grid.across * OUT, left = place % grid.across * OUT;
  int64_t rows = least(OUT, s.out_height - top), columns = least(OUT, s.out_width - left);
  const Vector low = all(s.low), high = all(s.high);
  int64_t begin = ((image * s.out_height + top) * s.out_width + left) * s.out_depth + channel;
  for (int64_t c = 0; c < depth; c += LANES) {
    Vector half[IN][OUT], line[IN], y[OUT][OUT];  // by columns, then by rows
#pragma GCC unroll 6
    for (int x = 0; x < IN; x++) {
#pragma GCC unroll 6
      for (int i = 0; i < IN; i++) line[i] = load(from + (i * IN + x) * apart + c);
      out_of(line, half[x]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < OUT; r++) {
#pragma GCC unroll 6
      for (int x = 0; x < IN; x++) line[x] = half[x][r];
      out_of(line, y[r]);
    }
    Vector bias = load(s.bias + channel + c);
    for (int64_t r = 0; r < rows; r++)
      for (int64_t x = 0; x < columns; x++) {
        int64_t at = begin + (r * s.out_width + x) * s.out_depth + c;
        Vector value = y[r][x] + bias;
        if (s.residual) value += load(s.residual + at);
        store(s.output + at, smaller(high, larger(low, value)));
      }
  }
}

// The products for one panel of the result and its way back. Weights are packed panel by panel and lie in the order
// in which they are read here.
template <int OUT>
static void panel_of_tiles(const Step &s, const Grid<OUT> &grid, Share tiles, const Transformed &in, int64_t panel,
                           float *between) {
  int64_t count = tiles.last - tiles.first, size = s.depth * COLUMNS, apart = count * COLUMNS;
  for (int64_t i = 0; i < grid.MATRICES; i++) {
    Left left = {in.data + i * in.matrix, nullptr, in.row, 1, s.depth, 0};
    Result result = {between + i * apart, COLUMNS, COLUMNS, {ZEROS, 0}, {}, CLIP, -INFINITE, INFINITE};
    const float *weights = s.weight + (panel * grid.MATRICES + i) * size;
    pass(left, 0, weights, size, result, Share(0, count), Share(0, 1), true, true, true);
  }
  int64_t channel = panel * COLUMNS, depth = least(COLUMNS, s.out_depth - channel);
  for (int64_t t = 0; t < count; t++)
    transform_out(s, grid, tiles.first + t, channel, depth, between + t * COLUMNS, apart);
}

// Many tiles are shared out in blocks, which go all the way in the cache of one thread. Few are transformed together,
// and then panels are shared out.
template <int OUT> struct Blocks {
  Grid<OUT> grid;
  int64_t panels, count;
  bool is_by_panels;
  Blocks(const Step &s, int team) : grid(s), panels(parts(s.out_depth, COLUMNS)) {
    int64_t rounds = grid.count / (team * BLOCK);
    is_by_panels = rounds == 0 && team > 1 && grid.count <= MOST_TILES;
    count = most(1, rounds) * team;
  }
  static constexpr int64_t BLOCK = 4 * ROWS, MOST_TILES = 256;  // of a block, about; for which there is scratch
};

template <int OUT> static int64_t winograd_phases(const Step &s, int team) {
  return Blocks<OUT>(s, team).is_by_panels ? 2 : 1;
}

template <int OUT> static int64_t winograd_units(const Step &s, int64_t phase, int team) {
  Blocks<OUT> blocks(s, team);
  if (!blocks.is_by_panels) return blocks.count;
  return phase == 0 ? least(blocks.grid.count, 4 * team) : blocks.panels;
}

template <int OUT> static void winograd(const Step &s, int64_t phase, int64_t unit, int team) {
  Blocks<OUT> blocks(s, team);
  const Grid<OUT> &grid = blocks.grid;
  if (!blocks.is_by_panels) {
    Share tiles(grid.count, unit, blocks.count);
    int64_t count = tiles.last - tiles.first, size = grid.MATRICES * Transformed(nullptr, s.depth, count).matrix;
    float *memory = own_memory(size + grid.MATRICES * count * COLUMNS);
    Transformed in(memory, s.depth, count);
    transform_in(s, grid, tiles, in, tiles.first);
    for (int64_t panel = 0; panel < blocks.panels; panel++) panel_of_tiles(s, grid, tiles, in, panel, memory + size);
    return;
  }
  Transformed in(s.scratch, s.depth, grid.count);
  if (phase == 0) return transform_in(s, grid, Share(grid.count, unit, winograd_units<OUT>(s, 0, team)), in, 0);
  panel_of_tiles(s, grid, Share(0, grid.count), in, unit, own_memory(grid.MATRICES * grid.count * COLUMNS));
}
