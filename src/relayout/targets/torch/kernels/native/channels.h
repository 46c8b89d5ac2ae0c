// What treats each channel or each pixel alone: filters, pooling, normalisation, borders, sums.
#pragma once
#include "vector.h"

constexpr int NEIGHBOURS = 8;

// The rows of a kernel that lie inside for one line of the result, and where the first of them would begin.
struct Line {
  Share rows;
  const float *from;
  float *to;
  Line(const Step &s, int64_t line) : rows(0, 0) {
    int64_t image = line / s.out_height, y = line % s.out_height * s.stride - s.pad_top;
    rows = Share(most(0, -y), least(s.kernel_height, s.height - y));
    from = s.input + (image * s.height + y) * s.width * s.depth;
    to = s.output + line * s.out_width * s.out_depth;
  }
};

// Neighbours of one line, all channels. Each column of the operand is read once and serves all of them.
template <int WIDTH, int STRIDE, bool INSIDE>
static void filter(const Step &s, const Line &line, int64_t left, float *to, int64_t count) {
  constexpr int SPAN = (NEIGHBOURS - 1) * STRIDE + WIDTH;
  const int64_t depth = s.depth, width = s.width, first = line.rows.first, last = line.rows.last;
  const Vector low = all(s.low), high = all(s.high);
  const float *bias = s.bias, *weights = s.weight, *from = line.from + left * depth;
  for (int64_t c = 0; c < depth; c += LANES) {
    Vector sum[NEIGHBOURS];
    for (int j = 0; j < NEIGHBOURS; j++) sum[j] = load(bias + c);
    for (int64_t y = first; y < last; y++) {
      const float *weight = weights + y * WIDTH * depth + c, *row = from + y * width * depth + c;
      Vector factor[WIDTH];
      for (int x = 0; x < WIDTH; x++) factor[x] = load(weight + x * depth);
#pragma GCC unroll 24
      for (int column = 0; column < SPAN; column++, row += depth) {
        if (!INSIDE && (left + column < 0 || left + column >= width)) continue;
        Vector value = load(row);
#pragma GCC unroll 8
        for (int j = 0; j < NEIGHBOURS; j++)
          if (column >= j * STRIDE && column < j * STRIDE + WIDTH) sum[j] += value * factor[column - j * STRIDE];
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < NEIGHBOURS; j++)
      if (INSIDE || j < count) store(to + j * depth + c, smaller(high, larger(low, sum[j])));
  }
}

// The same for any kernel, pixel by pixel.
static void filter_any(const Step &s, const Line &line, int64_t left, float *to) {
  Share columns(most(0, -left), least(s.kernel_width, s.width - left));
  for (int64_t c = 0; c < s.depth; c += LANES) {
    Vector sum = load(s.bias + c);
    for (int64_t y = line.rows.first; y < line.rows.last; y++)
      for (int64_t x = columns.first; x < columns.last; x++)
        sum += load(s.weight + (y * s.kernel_width + x) * s.depth + c) *
               load(line.from + (y * s.width + left + x) * s.depth + c);
    store(to + c, smaller(all(s.high), larger(all(s.low), sum)));
  }
}

template <int WIDTH, int STRIDE>
static void filter_lines(const Step &s, Share lines) {
  constexpr int SPAN = (NEIGHBOURS - 1) * STRIDE + WIDTH;
  for (int64_t index = lines.first; index < lines.last; index++) {
    Line line(s, index);
    for (int64_t x = 0; x < s.out_width; x += NEIGHBOURS) {
      int64_t left = x * STRIDE - s.pad_left, count = least(NEIGHBOURS, s.out_width - x);
      bool inside = left >= 0 && left + SPAN <= s.width && count == NEIGHBOURS;
      auto kernel = inside ? filter<WIDTH, STRIDE, true> : filter<WIDTH, STRIDE, false>;
      kernel(s, line, left, line.to + x * s.depth, count);
    }
  }
}

static void filter_any_lines(const Step &s, Share lines) {
  for (int64_t index = lines.first; index < lines.last; index++) {
    Line line(s, index);
    for (int64_t x = 0; x < s.out_width; x++)
      filter_any(s, line, x * s.stride - s.pad_left, line.to + x * s.depth);
  }
}

static void depthwise(const Step &s, Share lines) {
  switch (s.kernel_width * 10 + s.stride) {
    case 31: return filter_lines<3, 1>(s, lines);
    case 32: return filter_lines<3, 2>(s, lines);
    case 51: return filter_lines<5, 1>(s, lines);
    case 52: return filter_lines<5, 2>(s, lines);
    case 71: return filter_lines<7, 1>(s, lines);
    default: return filter_any_lines(s, lines);
  }
}

static void max_pool(const Step &s, Share lines) {
  const int64_t depth = s.depth, width = s.width;
  for (int64_t index = lines.first; index < lines.last; index++) {
    Line line(s, index);
    const Share rows = line.rows;
    for (int64_t x = 0; x < s.out_width; x++) {
      int64_t left = x * s.stride - s.pad_left;
      const Share columns(most(0, left), least(width, left + s.kernel_width));
      float *to = line.to + x * depth;
      for (int64_t c = 0; c < depth; c += LANES) {
        Vector best = all(-INFINITE);
        for (int64_t i = rows.first; i < rows.last; i++)
          for (int64_t j = columns.first; j < columns.last; j++)
            best = larger(best, load(line.from + (i * width + j) * depth + c));
        store(to + c, best);
      }
    }
  }
}

static void average(const Step &s, Share units) {
  int64_t pixels = s.height * s.width, vectors = s.depth / LANES;
  for (int64_t unit = units.first; unit < units.last; unit++) {
    int64_t image = unit / vectors, c = unit % vectors * LANES;
    const float *from = s.input + image * pixels * s.depth + c;
    Vector sum = {};
    for (int64_t p = 0; p < pixels; p++) sum += load(from + p * s.depth);
    store(s.output + image * s.depth + c, sum / (float)pixels);
  }
}

static inline float total(Vector x) {
  float sum = 0;
  for (int i = 0; i < LANES; i++) sum += x[i];
  return sum;
}

static void layer_norm(const Step &s, Share pixels) {
  for (int64_t p = pixels.first; p < pixels.last; p++) {
    const float *from = s.input + p * s.depth;
    Vector sum = {}, squares = {};
    for (int64_t c = 0; c < s.depth; c += LANES) sum += load(from + c);
    float mean = total(sum) / s.depth;
    for (int64_t c = 0; c < s.depth; c += LANES) {
      Vector apart = load(from + c) - mean;
      squares += apart * apart;
    }
    float scale = 1.0f / sqrtf(total(squares) / s.depth + s.low);
    for (int64_t c = 0; c < s.depth; c += LANES)
      store(s.output + p * s.depth + c, (load(from + c) - mean) * scale * load(s.weight + c) + load(s.bias + c));
  }
}

// The operand with a border of zeros around it; it comes channels first or channels last.
static void border(const Step &s, Share lines, bool channels_first) {
  for (int64_t line = lines.first; line < lines.last; line++) {
    int64_t image = line / s.out_height, y = line % s.out_height - s.pad_top;
    float *to = s.output + line * s.out_width * s.depth;
    memset(to, 0, s.out_width * s.depth * sizeof(float));
    if (y < 0 || y >= s.height) continue;
    to += s.pad_left * s.depth;
    if (!channels_first) {
      memcpy(to, s.input + (image * s.height + y) * s.width * s.depth, s.width * s.depth * sizeof(float));
      continue;
    }
    for (int64_t c = 0; c < s.depth; c++) {
      const float *from = s.input + ((image * s.depth + c) * s.height + y) * s.width;
      for (int64_t x = 0; x < s.width; x++) to[x * s.depth + c] = from[x];
    }
  }
}

// A sum of two tensors, or one alone, and an activation.
static void sum(const Step &s, Share vectors) {
  for (int64_t at = vectors.first * LANES; at < vectors.last * LANES; at += LANES) {
    Vector x = load(s.input + at);
    if (s.residual) x += load(s.residual + at);
    store(s.output + at, s.activation == GELU ? gelu(x) : smaller(all(s.high), larger(all(s.low), x)));
  }
}
