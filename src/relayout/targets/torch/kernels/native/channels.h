// What treats each channel or each pixel alone: pooling, normalisation, borders, sums.
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
