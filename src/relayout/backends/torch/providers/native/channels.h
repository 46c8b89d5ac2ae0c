// Kernels that work on each channel or each pixel alone: pooling, normalisation, zero padding, sums.
#pragma once
#include "filter.h"

static void max_pool(const Step &s, Share lines) {
  const int64_t depth = s.depth, width = s.width;
  for (int64_t index = lines.first; index < lines.last; index++) {
    int64_t image = index / s.out_height, y = index % s.out_height;
    const Share rows = rows_inside(s, y);
    const float *from = s.input + (image * s.height + y * s.stride - s.pad_top) * width * depth;
    for (int64_t x = 0; x < s.out_width; x++) {
      int64_t left = x * s.stride - s.pad_left;
      const Share columns(most(0, left), least(width, left + s.kernel_width));
      float *to = s.output + (index * s.out_width + x) * depth;
      for (int64_t c = 0; c < depth; c += LANES) {
        Vector best = all(-INFINITE);
        for (int64_t i = rows.first; i < rows.last; i++)
          for (int64_t j = columns.first; j < columns.last; j++)
            best = larger(best, load(from + (i * width + j) * depth + c));
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

// Several pixels at a time: the sums of one wait for each other.
template <int PIXELS>
static void layer_norm(const Step &s, int64_t first) {
  const int64_t depth = s.depth;
  const float *from = s.input + first * depth;
  float *to = s.output + first * depth;
  Vector sum[PIXELS] = {}, squares[PIXELS] = {};
  float mean[PIXELS], scale[PIXELS];
  for (int64_t c = 0; c < depth; c += LANES)
#pragma GCC unroll 8
    for (int p = 0; p < PIXELS; p++) sum[p] += load(from + p * depth + c);
  for (int p = 0; p < PIXELS; p++) mean[p] = total(sum[p]) / depth;
  for (int64_t c = 0; c < depth; c += LANES)
#pragma GCC unroll 8
    for (int p = 0; p < PIXELS; p++) {
      Vector apart = load(from + p * depth + c) - mean[p];
      squares[p] += apart * apart;
    }
  for (int p = 0; p < PIXELS; p++) scale[p] = 1.0f / sqrtf(total(squares[p]) / depth + s.low);
  for (int64_t c = 0; c < depth; c += LANES)
#pragma GCC unroll 8
    for (int p = 0; p < PIXELS; p++) {
      Vector centred = (load(from + p * depth + c) - mean[p]) * scale[p];
      store(to + p * depth + c, centred * load(s.weight + c) + load(s.bias + c));
    }
}

static void layer_norm(const Step &s, Share pixels) {
  int64_t p = pixels.first;
  for (; p + 4 <= pixels.last; p += 4) layer_norm<4>(s, p);
  for (; p < pixels.last; p++) layer_norm<1>(s, p);
}

// Pixels of a line that comes channels first, `apart` floats from one channel to the next.
template <int DEPTH>
static void interleaved(const float *from, int64_t apart, int64_t width, int64_t depth, float *to) {
  if (DEPTH) depth = DEPTH;
  for (int64_t x = 0; x < width; x++, to += depth)
    for (int64_t c = 0; c < depth; c++) to[c] = from[c * apart + x];
}

// Zero padding; the operand comes channels first or channels last.
static void border(const Step &s, Share lines, bool channels_first) {
  const int64_t depth = s.depth, width = s.width, before = s.pad_left * depth, after = (s.out_width - s.pad_left - width) * depth;
  const auto interleave = depth == 3 ? interleaved<3> : interleaved<0>;
  for (int64_t line = lines.first; line < lines.last; line++) {
    int64_t image = line / s.out_height, y = line % s.out_height - s.pad_top;
    float *to = s.output + line * s.out_width * depth;
    if (y < 0 || y >= s.height) {
      memset(to, 0, s.out_width * depth * sizeof(float));
      continue;
    }
    memset(to, 0, before * sizeof(float));
    to += before;
    if (channels_first) interleave(s.input + (image * depth * s.height + y) * width, s.height * width, width, depth, to);
    else memcpy(to, s.input + (image * s.height + y) * width * depth, width * depth * sizeof(float));
    memset(to + width * depth, 0, after * sizeof(float));
  }
}

static inline Vector activated(Vector x, const Step &s) {
  switch (s.activation) {
    case GELU: return gelu(x);
    case SILU: return silu(x);
    case HARD_SWISH: return x * smaller(all(6), larger(all(0), x + 3)) * (1.0f / 6);
    case SIGMOID: return sigmoid(x);
    default: return smaller(all(s.high), larger(all(s.low), x));
  }
}

// A sum of two tensors, or one alone, and an activation.
static void sum(const Step &s, Share vectors) {
  for (int64_t at = vectors.first * LANES; at < vectors.last * LANES; at += LANES) {
    Vector x = load(s.input + at);
    if (s.residual) x += load(s.residual + at);
    store(s.output + at, activated(x, s));
  }
}
