// 3x3 convolutions by Winograd's F(4x4, 3x3): 36 multiplications where 144 were.
#pragma once
#include "product.h"

constexpr int OUT = 4, IN = 6;

static inline __attribute__((always_inline)) void into(const Vector (&d)[IN], Vector (&to)[IN]) {
  Vector even = d[4] - 4.0f * d[2], odd = d[3] - 4.0f * d[1], far = d[4] - d[2], near = 2.0f * (d[3] - d[1]);
  to[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
  to[1] = even + odd;
  to[2] = even - odd;
  to[3] = far + near;
  to[4] = far - near;
  to[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
}

static inline void out_of(const Vector *m, int64_t step, Vector *y, int64_t y_step) {
  Vector s1 = m[step] + m[2 * step], d1 = m[step] - m[2 * step];
  Vector s2 = m[3 * step] + m[4 * step], d2 = m[3 * step] - m[4 * step];
  y[0] = m[0] + s1 + s2;
  y[y_step] = d1 + 2.0f * d2;
  y[2 * y_step] = s1 + 4.0f * s2;
  y[3 * y_step] = d1 + 8.0f * d2 + m[5 * step];
}

struct Grid {
  int64_t across, down, count;
  explicit Grid(const Step &s)
      : across(parts(s.out_width, OUT)), down(parts(s.out_height, OUT)), count(s.batch * across * down) {}
};

// Tiles as the products read them: 36 matrices with a row per tile. Rows lie a little apart, for reads from rows
// that begin at the same place of their pages get in each other's way; so do matrices, for a tile writes to them all.
struct Transformed {
  float *data;
  int64_t row, matrix;
  Transformed(float *data, int64_t depth, int64_t tiles)
      : data(data), row(depth + COLUMNS), matrix((parts(tiles * row, COLUMNS) | 1) * COLUMNS) {}
  int64_t size() const { return IN * IN * matrix; }
};

static void transform_in(const Step &s, const Grid &grid, int64_t tile, float *to, int64_t apart) {
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

static void transform_in(const Step &s, const Grid &grid, Share tiles, const Transformed &to, int64_t first) {
  for (int64_t t = tiles.first; t < tiles.last; t++)
    transform_in(s, grid, t, to.data + (t - first) * to.row, to.matrix);
}

// One tile of the result, `depth` channels from `channel` on.
static void transform_out(const Step &s, const Grid &grid, int64_t tile, int64_t channel, int64_t depth,
                          const float *from, int64_t apart) {
  int64_t image = tile / (grid.across * grid.down), place = tile % (grid.across * grid.down);
  int64_t top = place / grid.across * OUT, left = place % grid.across * OUT;
  int64_t rows = least(OUT, s.out_height - top), columns = least(OUT, s.out_width - left);
  const Vector low = all(s.low), high = all(s.high);
  int64_t begin = ((image * s.out_height + top) * s.out_width + left) * s.out_depth + channel;
  for (int64_t c = 0; c < depth; c += LANES) {
    Vector m[IN * IN], half[OUT * IN], y[OUT * OUT];
    for (int i = 0; i < IN * IN; i++) m[i] = load(from + i * apart + c);
#pragma GCC unroll 6
    for (int x = 0; x < IN; x++) out_of(m + x, IN, half + x, IN);
#pragma GCC unroll 4
    for (int r = 0; r < OUT; r++) out_of(half + r * IN, 1, y + r * OUT, 1);
    Vector bias = load(s.bias + channel + c);
    for (int64_t r = 0; r < rows; r++)
      for (int64_t x = 0; x < columns; x++) {
        int64_t at = begin + (r * s.out_width + x) * s.out_depth + c;
        Vector value = y[r * OUT + x] + bias;
        if (s.residual) value += load(s.residual + at);
        store(s.output + at, smaller(high, larger(low, value)));
      }
  }
}

// The 36 products for one panel of the result and its way back. Weights are packed panel by panel and lie in the
// order in which they are read here.
static void panel_of_tiles(const Step &s, const Grid &grid, Share tiles, const Transformed &in, int64_t panel,
                           float *between) {
  int64_t count = tiles.last - tiles.first, size = s.depth * COLUMNS, apart = count * COLUMNS;
  for (int64_t i = 0; i < IN * IN; i++) {
    Left left = {in.data + i * in.matrix, nullptr, in.row, 1, s.depth, 0};
    Result result = {between + i * apart, COLUMNS, COLUMNS, {ZEROS, 0}, {}, CLIP, -INFINITE, INFINITE};
    const float *weights = s.weight + (panel * IN * IN + i) * size;
    pass(left, 0, weights, size, result, Share(0, count), Share(0, 1), true, true, true);
  }
  int64_t channel = panel * COLUMNS, depth = least(COLUMNS, s.out_depth - channel);
  for (int64_t t = 0; t < count; t++)
    transform_out(s, grid, tiles.first + t, channel, depth, between + t * COLUMNS, apart);
}

// Many tiles are shared out in blocks, which go all the way in the cache of one thread. Few are transformed together,
// and then panels are shared out.
struct Blocks {
  Grid grid;
  int64_t panels, count;
  bool is_by_panels;
  Blocks(const Step &s, int team) : grid(s), panels(parts(s.out_depth, COLUMNS)) {
    int64_t rounds = grid.count / (team * BLOCK);
    is_by_panels = rounds == 0 && team > 1 && grid.count <= MOST_TILES;
    count = most(1, rounds) * team;
  }
  static constexpr int64_t BLOCK = 4 * ROWS, MOST_TILES = 256;  // of a block, about; for which there is scratch
};

static int64_t winograd_phases(const Step &s, int team) { return Blocks(s, team).is_by_panels ? 2 : 1; }

static int64_t winograd_units(const Step &s, int64_t phase, int team) {
  Blocks blocks(s, team);
  if (!blocks.is_by_panels) return blocks.count;
  return phase == 0 ? least(blocks.grid.count, 4 * team) : blocks.panels;
}

static void winograd(const Step &s, int64_t phase, int64_t unit, int team) {
  Blocks blocks(s, team);
  const Grid &grid = blocks.grid;
  if (!blocks.is_by_panels) {
    Share tiles(grid.count, unit, blocks.count);
    int64_t count = tiles.last - tiles.first, size = Transformed(nullptr, s.depth, count).size();
    float *memory = own_memory(size + IN * IN * count * COLUMNS);
    Transformed in(memory, s.depth, count);
    transform_in(s, grid, tiles, in, tiles.first);
    for (int64_t panel = 0; panel < blocks.panels; panel++) panel_of_tiles(s, grid, tiles, in, panel, memory + size);
    return;
  }
  Transformed in(s.scratch, s.depth, grid.count);
  if (phase == 0) return transform_in(s, grid, Share(grid.count, unit, winograd_units(s, 0, team)), in, 0);
  panel_of_tiles(s, grid, Share(0, grid.count), in, unit, own_memory(IN * IN * grid.count * COLUMNS));
}
