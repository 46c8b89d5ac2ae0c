// 3x3 convolutions by Winograd's F(4x4, 3x3): 36 multiplications where 144 were.
#pragma once
#include "product.h"

constexpr int OUT = 4, IN = 6;
constexpr int64_t ZEROS = 8192;  // at the front of the scratch, for pixels outside; no tensor is deeper

static inline void into(Vector *d, int64_t step) {
  Vector d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
  Vector even = d4 - 4.0f * d2, odd = d3 - 4.0f * d1, far = d4 - d2, near = 2.0f * (d3 - d1);
  d[0] = 4.0f * d0 - 5.0f * d2 + d4;
  d[step] = even + odd;
  d[2 * step] = even - odd;
  d[3 * step] = far + near;
  d[4 * step] = far - near;
  d[5 * step] = 4.0f * d1 - 5.0f * d3 + d5;
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

static void transform_in(const Step &s, const Grid &grid, int64_t tile, const float *zeros, float *to, int64_t apart) {
  const float *from[IN * IN];
  int64_t image = tile / (grid.across * grid.down), place = tile % (grid.across * grid.down);
  int64_t top = place / grid.across * OUT - s.pad_top, left = place % grid.across * OUT - s.pad_left;
  for (int i = 0; i < IN * IN; i++) {
    int64_t y = top + i / IN, x = left + i % IN;
    bool inside = y >= 0 && y < s.height && x >= 0 && x < s.width;
    from[i] = inside ? s.input + ((image * s.height + y) * s.width + x) * s.depth : zeros;
  }
  for (int64_t c = 0; c < s.depth; c += LANES) {
    Vector d[IN * IN];
    for (int i = 0; i < IN * IN; i++) d[i] = load(from[i] + c);
#pragma GCC unroll 6
    for (int x = 0; x < IN; x++) into(d + x, IN);
#pragma GCC unroll 6
    for (int y = 0; y < IN; y++) into(d + y * IN, 1);
    for (int i = 0; i < IN * IN; i++) store(to + i * apart + c, d[i]);
  }
}

static void transform_out(const Step &s, const Grid &grid, int64_t tile, const float *from, int64_t apart) {
  int64_t image = tile / (grid.across * grid.down), place = tile % (grid.across * grid.down);
  int64_t top = place / grid.across * OUT, left = place % grid.across * OUT;
  int64_t rows = least(OUT, s.out_height - top), columns = least(OUT, s.out_width - left);
  const Vector low = all(s.low), high = all(s.high);
  int64_t begin = ((image * s.out_height + top) * s.out_width + left) * s.out_depth;
  for (int64_t c = 0; c < s.out_depth; c += LANES) {
    Vector m[IN * IN], half[OUT * IN], y[OUT * OUT];
    for (int i = 0; i < IN * IN; i++) m[i] = load(from + i * apart + c);
#pragma GCC unroll 6
    for (int x = 0; x < IN; x++) out_of(m + x, IN, half + x, IN);
#pragma GCC unroll 4
    for (int r = 0; r < OUT; r++) out_of(half + r * IN, 1, y + r * OUT, 1);
    Vector bias = load(s.bias + c);
    for (int64_t r = 0; r < rows; r++)
      for (int64_t x = 0; x < columns; x++) {
        int64_t at = begin + (r * s.out_width + x) * s.out_depth + c;
        Vector value = y[r * OUT + x] + bias;
        if (s.residual) value += load(s.residual + at);
        store(s.output + at, smaller(high, larger(low, value)));
      }
  }
}

// Tiles go through in bands, each in three phases: transform the operand, 36 products, transform the result.
enum { TRANSFORM_IN, MULTIPLY, TRANSFORM_OUT, PHASES };

struct Band {
  Grid grid;
  int64_t first, count, panels, in_apart, out_apart;
  float *zeros, *inner, *outer;
  Band(const Step &s, int64_t index) : grid(s), panels(parts(s.out_depth, COLUMNS)) {
    first = index * s.band, count = least(s.band, grid.count - first);
    in_apart = s.band * s.depth + COLUMNS, out_apart = s.band * s.out_depth + COLUMNS;
    zeros = s.scratch, inner = zeros + ZEROS, outer = inner + IN * IN * in_apart;
  }
};

static int64_t winograd_units(const Step &s, int64_t phase, int team) {
  Band band(s, phase / PHASES);
  if (team == 1) return 1;
  return least(phase % PHASES == MULTIPLY ? IN * IN : band.count, 6 * team);
}

static void multiply(const Step &s, const Band &band, Share places) {
  int64_t weights = s.depth * band.panels * COLUMNS;
  for (int64_t i = places.first; i < places.last; i++) {
    Left left = {band.inner + i * band.in_apart, nullptr, s.depth, 1, s.depth, 0};
    Result result = {band.outer + i * band.out_apart, s.out_depth, s.out_depth, band.zeros, nullptr, CLIP, -INFINITE, INFINITE};
    product(left, s.weight + i * weights, result, Share(0, band.count), Share(0, band.panels));
  }
}

static void winograd(const Step &s, int64_t phase, int64_t unit, int team) {
  Band band(s, phase / PHASES);
  int64_t units = winograd_units(s, phase, team);
  if (phase % PHASES == MULTIPLY) return multiply(s, band, Share(IN * IN, unit, units));
  Share tiles(band.count, unit, units);
  for (int64_t t = tiles.first; t < tiles.last; t++) {
    if (phase % PHASES == TRANSFORM_IN)
      transform_in(s, band.grid, band.first + t, band.zeros, band.inner + t * s.depth, band.in_apart);
    else
      transform_out(s, band.grid, band.first + t, band.outer + t * s.out_depth, band.out_apart);
  }
}
