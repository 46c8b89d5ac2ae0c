// Depthwise convolutions, alone or after the product that computes what they read.
#pragma once
#include "product.h"

constexpr int NEIGHBOURS = 7;  // widths of images are often multiples: 112, 56, 28, 14, 7

// Some channels of an image and their filters; pixels of the operand and of the result lie differently far apart.
struct Filter {
  const float *weight, *bias;
  int64_t channels, apart_in, apart_out, width, out_width, pad_left;
  int64_t kernel_height, kernel_width, stride;
  float low, high;
  Filter(const Step &s, int64_t first, int64_t channels, int64_t apart_in)
      : weight(s.weight + first), bias(s.bias + first), channels(channels), apart_in(apart_in), apart_out(s.depth),
        width(s.width), out_width(s.out_width), pad_left(s.pad_left), kernel_height(s.kernel_height),
        kernel_width(s.kernel_width), stride(s.stride), low(s.low), high(s.high) {}
};

// The rows of a kernel that lie inside for one line of the result, and where the first of them would begin.
struct Line {
  Share rows;
  const float *from;
  float *to;
};

static inline Share rows_inside(const Step &s, int64_t y) {
  int64_t top = y * s.stride - s.pad_top;
  return Share(most(0, -top), least(s.kernel_height, s.height - top));
}

// Which columns of a tile of neighbours lie outside of the image, and which neighbours there are: known when this is
// compiled, or not.
template <int SPAN, int BEFORE, int AFTER>
struct Known {
  bool is_out(int column) const { return column < BEFORE || column >= SPAN - AFTER; }
  bool is_wanted(int) const { return true; }
};

struct Unknown {
  int64_t left, width, count;
  bool is_out(int column) const { return left + column < 0 || left + column >= width; }
  bool is_wanted(int neighbour) const { return neighbour < count; }
};

// Neighbours of one line. Each column of the operand is read once and serves all of them.
template <int WIDTH, int STRIDE, class Edges>
static void filter(const Filter &f, const Line &line, int64_t left, float *to, Edges edges) {
  constexpr int SPAN = (NEIGHBOURS - 1) * STRIDE + WIDTH;
  const int64_t apart = f.apart_in, depth = f.apart_out, first = line.rows.first, last = line.rows.last;
  const Vector low = all(f.low), high = all(f.high);
  const float *from = line.from + left * apart;
  for (int64_t c = 0; c < f.channels; c += LANES) {
    Vector sum[NEIGHBOURS];
    for (int j = 0; j < NEIGHBOURS; j++) sum[j] = load(f.bias + c);
    for (int64_t y = first; y < last; y++) {
      const float *weight = f.weight + y * WIDTH * depth + c, *row = from + y * f.width * apart + c;
      Vector factor[WIDTH];
      for (int x = 0; x < WIDTH; x++) factor[x] = load(weight + x * depth);
#pragma GCC unroll 24
      for (int column = 0; column < SPAN; column++) {
        if (edges.is_out(column)) continue;
        Vector value = load(row + column * apart);
#pragma GCC unroll 8
        for (int j = 0; j < NEIGHBOURS; j++)
          if (column >= j * STRIDE && column < j * STRIDE + WIDTH)
            sum[j] = plus_product(sum[j], value, factor[column - j * STRIDE]);
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < NEIGHBOURS; j++)
      if (edges.is_wanted(j)) store(to + j * depth + c, smaller(high, larger(low, sum[j])));
  }
}

template <int WIDTH, int STRIDE>
static void filter_line(const Filter &f, const Line &line) {
  constexpr int SPAN = (NEIGHBOURS - 1) * STRIDE + WIDTH, HALF = WIDTH / 2;
  for (int64_t x = 0; x < f.out_width; x += NEIGHBOURS) {
    int64_t left = x * STRIDE - f.pad_left, count = least(NEIGHBOURS, f.out_width - x);
    int64_t before = most(0, -left), after = most(0, left + SPAN - f.width);
    float *to = line.to + x * f.apart_out;
    bool is_usual = count == NEIGHBOURS && (before == 0 || before == HALF) && (after == 0 || after == HALF);
    if (!is_usual) filter<WIDTH, STRIDE>(f, line, left, to, Unknown{left, f.width, count});
    else if (before && after) filter<WIDTH, STRIDE>(f, line, left, to, Known<SPAN, HALF, HALF>());
    else if (before) filter<WIDTH, STRIDE>(f, line, left, to, Known<SPAN, HALF, 0>());
    else if (after) filter<WIDTH, STRIDE>(f, line, left, to, Known<SPAN, 0, HALF>());
    else filter<WIDTH, STRIDE>(f, line, left, to, Known<SPAN, 0, 0>());
  }
}

// The same for any kernel, pixel by pixel.
static void filter_any_line(const Filter &f, const Line &line) {
  for (int64_t x = 0; x < f.out_width; x++) {
    int64_t left = x * f.stride - f.pad_left;
    Share columns(most(0, -left), least(f.kernel_width, f.width - left));
    for (int64_t c = 0; c < f.channels; c += LANES) {
      Vector sum = load(f.bias + c);
      for (int64_t y = line.rows.first; y < line.rows.last; y++)
        for (int64_t i = columns.first; i < columns.last; i++)
          sum += load(f.weight + (y * f.kernel_width + i) * f.apart_out + c) *
                 load(line.from + (y * f.width + left + i) * f.apart_in + c);
      store(line.to + x * f.apart_out + c, smaller(all(f.high), larger(all(f.low), sum)));
    }
  }
}

static void filtered(const Filter &f, const Line &line) {
  switch (f.kernel_width * 10 + f.stride) {
    case 31: return filter_line<3, 1>(f, line);
    case 32: return filter_line<3, 2>(f, line);
    case 51: return filter_line<5, 1>(f, line);
    case 52: return filter_line<5, 2>(f, line);
    case 71: return filter_line<7, 1>(f, line);
    default: return filter_any_line(f, line);
  }
}

// A few channels at a time, for the lines that a large kernel reads again stay in the near cache then.
static void depthwise(const Step &s, Share lines) {
  constexpr int64_t FEW = 4 * LANES;
  for (int64_t c = 0; c < s.depth; c += FEW) {
    Filter f(s, c, least(FEW, s.depth - c), s.depth);
    for (int64_t index = lines.first; index < lines.last; index++) {
      int64_t image = index / s.out_height, y = index % s.out_height;
      const float *from = s.input + (image * s.height + y * s.stride - s.pad_top) * s.width * s.depth + c;
      filtered(f, {rows_inside(s, y), from, s.output + index * s.out_width * s.depth + c});
    }
  }
}

// A product that only the depthwise convolution after it reads is computed panel by panel, a few lines at a time, and
// convolved at once: what lies between the two never leaves the caches of a thread, and none waits between them.
constexpr int64_t NEAREST = 16384;  // floats of lines that are computed at a time

// How the two are cut for a team: into panels, and into parts of lines, which the next step finds in the cache of the
// same thread, where the lines that two parts compute are few.
struct Widening {
  int64_t panels, by_lines;
  Widening(const Step &product, const Step &filter, int team) : panels(parts(product.out_depth, COLUMNS)), by_lines(1) {
    auto work = [&](int64_t cut) {
      int64_t lines = parts(filter.out_height, cut) * filter.stride + (cut > 1 ? filter.kernel_height - 1 : 0);
      return parts(filter.batch * panels * cut, team) * lines;
    };
    if (10 * work(team) <= 11 * work(1)) by_lines = team;
  }
  int64_t units(const Step &filter) const { return filter.batch * panels * by_lines; }
};

static bool is_by_lines(const Step *steps, int team) { return Widening(steps[0], steps[1], team).by_lines == team; }

// One panel of an image, from a line of the filter's result on: what of the product is in memory.
struct Panel {
  const Step &product_, &filter_;
  int64_t image, column, channels, line, begin, end;
  float *lines;
  Panel(const Step *steps, int64_t image, int64_t panel, int64_t first, float *memory)
      : product_(steps[0]), filter_(steps[1]), image(image), column(panel * COLUMNS),
        channels(least(COLUMNS, filter_.depth - column)), line(filter_.width * channels),
        begin(most(0, first * filter_.stride - filter_.pad_top)), end(begin), lines(memory) {}

  static int64_t at_a_time(const Step &filter) { return most(1, NEAREST / (filter.width * COLUMNS * filter.stride)); }

  static int64_t room(const Step &filter, int64_t at_a_time) {
    return (at_a_time * filter.stride + filter.kernel_height) * filter.width * COLUMNS;
  }

  // Lines of the filter's result, which follow those before.
  void compute(Share rows, float *out) {
    const Step &f = filter_;
    int64_t keep = most(begin, least(end, rows.first * f.stride - f.pad_top));
    int64_t wanted = least(f.height, (rows.last - 1) * f.stride - f.pad_top + f.kernel_height);
    memmove(lines, lines + (keep - begin) * line, (end - keep) * line * sizeof(float));
    begin = keep;
    if (wanted > end) widen(wanted);
    Filter filter(f, column, channels, channels);
    for (int64_t y = rows.first; y < rows.last; y++, out += f.out_width * f.depth)
      filtered(filter, {rows_inside(f, y), lines + (y * f.stride - f.pad_top - begin) * line, out + column});
  }

  void widen(int64_t wanted) {
    const Step &p = product_, &f = filter_;
    Left left = {p.input, p.table, p.depth, p.kernel_height, p.kernel_width * p.depth, p.width * p.depth};
    Share rows((image * f.height + end) * f.width, (image * f.height + wanted) * f.width);
    float *to = lines + (end - begin) * line - rows.first * channels - column;
    Result result = {to, channels, f.depth, {p.bias, 0}, {}, p.activation, p.low, p.high};
    product(left, p.weight, result, rows, Share(column / COLUMNS, column / COLUMNS + 1));
    end = wanted;
  }
};

static void widened(const Step *steps, int64_t unit, int team) {
  const Step &f = steps[1];
  Widening cut(steps[0], f, team);
  int64_t part = unit / cut.panels % cut.by_lines, image = unit / cut.panels / cut.by_lines;
  int64_t at_a_time = Panel::at_a_time(f);
  Share share(f.out_height, part, cut.by_lines);
  Panel panel(steps, image, unit % cut.panels, share.first, own_memory(Panel::room(f, at_a_time)));
  for (int64_t y = share.first; y < share.last; y += at_a_time)
    panel.compute(Share(y, least(share.last, y + at_a_time)), f.output + (image * f.out_height + y) * f.out_width * f.depth);
}

// Where parts of lines are cut, the product after the convolution is done with both, of a few lines at a time.
static void narrowed(const Step *steps, int64_t unit, int team) {
  const Step &f = steps[1], &n = steps[2];
  Widening cut(steps[0], f, team);
  int64_t wide = f.out_width * f.depth, nearby = NEAR / (wide + f.stride * f.width * f.depth);
  int64_t at_a_time = most(1, least(nearby, Panel::at_a_time(f)));
  int64_t room = Panel::room(f, at_a_time), image = unit / cut.by_lines;
  Share share(f.out_height, unit % cut.by_lines, cut.by_lines);
  float *filtered = own_memory(at_a_time * wide + cut.panels * room), *memory = filtered + at_a_time * wide;
  std::vector<Panel> panels;
  for (int64_t panel = 0; panel < cut.panels; panel++)
    panels.emplace_back(steps, image, panel, share.first, memory + panel * room);
  for (int64_t y = share.first; y < share.last; y += at_a_time) {
    Share lines(y, least(share.last, y + at_a_time));
    for (Panel &panel : panels) panel.compute(lines, filtered);
    int64_t first = image * f.out_height + lines.first, last = image * f.out_height + lines.last;
    Left left = {filtered - first * wide, nullptr, n.depth, 1, n.depth, 0};
    Result result = {n.output, n.out_depth, n.out_depth, {n.bias, 0}, {n.residual, n.out_depth}, n.activation, n.low, n.high};
    product(left, n.weight, result, Share(first * f.out_width, last * f.out_width), Share(0, parts(n.out_depth, COLUMNS)));
  }
}
