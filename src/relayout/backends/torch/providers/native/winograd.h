// 3x3 convolutions by Winograd's F(4x4, 3x3), with 36 multiplications instead of 144, or by F(2x2, 3x3), with 16
// instead of 36 and less than half the weights.
//
// Four results in a row are made from six pixels, whose polynomial is multiplied by that of the filter at six points:
// 0, 1, -1, infinity, 2 and -2. Two results need four pixels and the first four points only, so tiles of both sizes
// share what was made of the weights. Infinity serves nothing but the last result of a tile: where the image ends
// before, no product is needed there.
#pragma once
#include "product.h"

constexpr int AT_INFINITY = 3;
static_assert(TILE == 4 && SMALL_TILE == 2 && POINTS == 6, "the transforms below are written for these");

static inline __attribute__((always_inline)) void into(const Vector (&d)[6], Vector (&to)[6]) {
  Vector even = d[4] - 4.0f * d[2], odd = d[3] - 4.0f * d[1], far = d[4] - d[2], near = 2.0f * (d[3] - d[1]);
  to[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
  to[1] = even + odd;
  to[2] = even - odd;
  to[3] = 4.0f * d[1] - 5.0f * d[3] + d[5];
  to[4] = far + near;
  to[5] = far - near;
}

// Weights are divided as six points want it, which is undone here.
static inline __attribute__((always_inline)) void into(const Vector (&d)[4], Vector (&to)[4]) {
  to[0] = 4.0f * (d[0] - d[2]);
  to[1] = -3.0f * (d[1] + d[2]);
  to[2] = 3.0f * (d[1] - d[2]);
  to[3] = d[3] - d[1];
}

static inline __attribute__((always_inline)) void out_of(const Vector (&m)[6], Vector (&y)[4]) {
  Vector s1 = m[1] + m[2], d1 = m[1] - m[2], s2 = m[4] + m[5], d2 = m[4] - m[5];
  y[0] = m[0] + s1 + s2;
  y[1] = d1 + 2.0f * d2;
  y[2] = s1 + 4.0f * s2;
  y[3] = d1 + 8.0f * d2 + m[3];
}

static inline __attribute__((always_inline)) void out_of(const Vector (&m)[4], Vector (&y)[2]) {
  y[0] = m[0] + m[1] + m[2];
  y[1] = m[1] - m[2] + m[3];
}

// A side of the result as tiles of one size, and a last one for what is left.
struct Side {
  int64_t size, full, rest, points;
  Side(int64_t length, int64_t size)
      : size(size), full(length / size), rest(length % size), points(size == TILE ? POINTS : AT_INFINITY + 1) {}
  int64_t lasts() const { return rest > 0; }
  int64_t last_size() const { return rest > 2 ? 4 : 2; }
  bool last_has(int64_t point) const { return point < AT_INFINITY || (point == AT_INFINITY ? rest == 2 : rest == 3); }
};

struct Tile {
  int64_t image, top, left, height, width;
};

// Tiles are numbered by kind: those that are last across, full ones, those that are last down, and those that are both.
// So the tiles that have a point down and a point across follow each other, whichever points these are.
struct Grid {
  Side down, across;
  int64_t across_end, full_end, down_end, count;
  explicit Grid(const Step &s)
      : down(s.out_height, s.kind == WINOGRAD ? TILE : SMALL_TILE),
        across(s.out_width, s.kind == WINOGRAD ? TILE : SMALL_TILE),
        across_end(s.batch * down.full * across.lasts()), full_end(across_end + s.batch * down.full * across.full),
        down_end(full_end + s.batch * down.lasts() * across.full),
        count(down_end + s.batch * down.lasts() * across.lasts()) {}

  Tile tile(int64_t index) const {
    bool is_last_down = index >= full_end, is_last_across = index < across_end || index >= down_end;
    int64_t place = index - (is_last_down ? is_last_across ? down_end : full_end : is_last_across ? 0 : across_end);
    int64_t lines = is_last_down ? 1 : down.full, columns = is_last_across ? 1 : across.full;
    int64_t line = place / columns, image = line / lines;
    int64_t y = is_last_down ? down.full : line % lines, x = is_last_across ? across.full : place % columns;
    int64_t height = is_last_down ? down.last_size() : down.size, width = is_last_across ? across.last_size() : across.size;
    return {image, y * down.size, x * across.size, height, width};
  }

  // How many matrices there has to be room for.
  int64_t matrices() const { return (down.points - 1) * POINTS + across.points; }

  // Which of some tiles, from the first of them on, have a point down and a point across.
  Share having(int64_t point_down, int64_t point_across, Share tiles) const {
    bool last_down = down.last_has(point_down), last_across = across.last_has(point_across);
    int64_t first = most(tiles.first, last_across ? 0 : across_end);
    int64_t last = least(tiles.last, !last_down ? full_end : last_across ? count : down_end);
    return Share(first - tiles.first, most(first, last) - tiles.first);
  }
};

// Tiles as the products read them: matrices with a row per tile. Rows lie a little apart, for reads from rows that
// begin at the same place of their pages get in each other's way; so do matrices, for a tile writes to them all.
struct Transformed {
  float *data;
  int64_t row, matrix;
  Transformed(float *data, int64_t depth, int64_t tiles)
      : data(data), row(depth + COLUMNS), matrix((parts(tiles * row, COLUMNS) | 1) * COLUMNS) {}
};

template <int DOWN, int ACROSS>
static void transform_in(const Step &s, const Tile &tile, float *to, int64_t apart) {
  constexpr int HEIGHT = DOWN + 2, WIDTH = ACROSS + 2;
  const float *from[HEIGHT * WIDTH];
  for (int i = 0; i < HEIGHT * WIDTH; i++) {
    int64_t y = tile.top - s.pad_top + i / WIDTH, x = tile.left - s.pad_left + i % WIDTH;
    bool inside = y >= 0 && y < s.height && x >= 0 && x < s.width;
    from[i] = inside ? s.input + ((tile.image * s.height + y) * s.width + x) * s.depth : ZEROS;
  }
  for (int64_t c = 0; c < s.depth; c += LANES) {
    Vector half[WIDTH][HEIGHT], column[HEIGHT], line[WIDTH], done[WIDTH];
#pragma GCC unroll 6
    for (int x = 0; x < WIDTH; x++) {
#pragma GCC unroll 6
      for (int y = 0; y < HEIGHT; y++) column[y] = load(from[y * WIDTH + x] + c);
      into(column, half[x]);
    }
    float *at = to + c;
#pragma GCC unroll 6
    for (int y = 0; y < HEIGHT; y++, at += (POINTS - WIDTH) * apart) {
#pragma GCC unroll 6
      for (int x = 0; x < WIDTH; x++) line[x] = half[x][y];
      into(line, done);
#pragma GCC unroll 6
      for (int x = 0; x < WIDTH; x++, at += apart) store(at, done[x]);
    }
  }
}

static void transform_in(const Step &s, const Grid &grid, Share tiles, const Transformed &to, int64_t first) {
  for (int64_t index = tiles.first; index < tiles.last; index++) {
    Tile tile = grid.tile(index);
    auto narrow = tile.height == 2 ? transform_in<2, 2> : transform_in<4, 2>;
    auto wide = tile.height == 2 ? transform_in<2, 4> : transform_in<4, 4>;
    (tile.width == 2 ? narrow : wide)(s, tile, to.data + (index - first) * to.row, to.matrix);
  }
}

// One tile of the result, `depth` channels from `channel` on.
template <int DOWN, int ACROSS>
static void transform_out(const Step &s, const Tile &tile, int64_t channel, int64_t depth, const float *from,
                          int64_t apart) {
  constexpr int HEIGHT = DOWN + 2, WIDTH = ACROSS + 2;
  int64_t rows = least(DOWN, s.out_height - tile.top), columns = least(ACROSS, s.out_width - tile.left);
  const Vector low = all(s.low), high = all(s.high);
  int64_t begin = ((tile.image * s.out_height + tile.top) * s.out_width + tile.left) * s.out_depth + channel;
  for (int64_t c = 0; c < depth; c += LANES) {
    Vector half[WIDTH][DOWN], column[HEIGHT], line[WIDTH], y[DOWN][ACROSS];
#pragma GCC unroll 6
    for (int x = 0; x < WIDTH; x++) {
#pragma GCC unroll 6
      for (int i = 0; i < HEIGHT; i++) column[i] = load(from + (i * POINTS + x) * apart + c);
      out_of(column, half[x]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < DOWN; r++) {
#pragma GCC unroll 6
      for (int x = 0; x < WIDTH; x++) line[x] = half[x][r];
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
static void panel_of_tiles(const Step &s, const Grid &grid, Share tiles, const Transformed &in, int64_t panel,
                           float *between) {
  int64_t size = s.depth * COLUMNS, apart = (tiles.last - tiles.first) * COLUMNS;
  const float *weights = s.weight + panel * grid.down.points * grid.across.points * size;
  for (int64_t down = 0; down < grid.down.points; down++)
    for (int64_t across = 0; across < grid.across.points; across++, weights += size) {
      int64_t matrix = down * POINTS + across;
      Left left = {in.data + matrix * in.matrix, nullptr, in.row, 1, s.depth, 0};
      Result result = {between + matrix * apart, COLUMNS, COLUMNS, {ZEROS, 0}, {}, CLIP, -INFINITE, INFINITE};
      pass(left, 0, weights, size, result, grid.having(down, across, tiles), Share(0, 1), true, true, true);
    }
  int64_t channel = panel * COLUMNS, depth = least(COLUMNS, s.out_depth - channel);
  for (int64_t index = tiles.first; index < tiles.last; index++, between += COLUMNS) {
    Tile tile = grid.tile(index);
    auto narrow = tile.height == 2 ? transform_out<2, 2> : transform_out<4, 2>;
    auto wide = tile.height == 2 ? transform_out<2, 4> : transform_out<4, 4>;
    (tile.width == 2 ? narrow : wide)(s, tile, channel, depth, between, apart);
  }
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
  static constexpr int64_t BLOCK = 4 * ROWS;  // tiles of a block, about
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
    int64_t count = tiles.last - tiles.first, size = grid.matrices() * Transformed(nullptr, s.depth, count).matrix;
    float *memory = own_memory(size + grid.matrices() * count * COLUMNS);
    Transformed in(memory, s.depth, count);
    transform_in(s, grid, tiles, in, tiles.first);
    for (int64_t panel = 0; panel < blocks.panels; panel++) panel_of_tiles(s, grid, tiles, in, panel, memory + size);
    return;
  }
  Transformed in(s.scratch, s.depth, grid.count);
  if (phase == 0) return transform_in(s, grid, Share(grid.count, unit, winograd_units(s, 0, team)), in, 0);
  panel_of_tiles(s, grid, Share(0, grid.count), in, unit, own_memory(grid.matrices() * grid.count * COLUMNS));
}
