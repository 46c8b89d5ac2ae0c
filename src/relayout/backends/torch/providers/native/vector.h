// Vectors of floats, shares of work, and activations.
#pragma once
#include "interface.h"  // made of native_interface.py when the kernels are built
#include <math.h>
#include <string.h>

#include <atomic>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

constexpr int ROWS = 6;  // twelve sums and what feeds them fill sixteen registers
static_assert(LANES == 8 && COLUMNS == 2 * LANES, "tiles are two vectors of eight floats wide");
constexpr float INFINITE = std::numeric_limits<float>::infinity();

typedef float Vector __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

static inline Vector load(const float *at) { return *(const Vector *)at; }
static inline void store(float *at, Vector value) { *(Vector *)at = value; }
static inline Vector all(float value) { return value - Vector{}; }
// If one operand is NaN, the result is the second one. GCC compiles a conditional expression to two instructions.
#ifdef __AVX__
static inline Vector larger(Vector a, Vector b) { return __builtin_ia32_maxps256(a, b); }
static inline Vector smaller(Vector a, Vector b) { return __builtin_ia32_minps256(a, b); }
#else
static inline Vector larger(Vector a, Vector b) { return a > b ? a : b; }
static inline Vector smaller(Vector a, Vector b) { return a < b ? a : b; }
#endif
// The form that accumulates in place keeps sums in their registers; GCC would move them and load factors twice.
static inline __attribute__((always_inline)) Vector plus_product(Vector sum, Vector a, Vector b) {
#ifdef __FMA__
  asm("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  return sum;
#else
  return sum + a * b;
#endif
}
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

static const float ZEROS[MOST_CHANNELS] = {};  // for what lies outside, and sums that start from nothing

// A range of a whole that is cut into parts of nearly equal size.
struct Share {
  int64_t first, last;
  Share(int64_t first, int64_t last) : first(first), last(last) {}
  Share(int64_t whole, int64_t part, int64_t of) : first(whole * part / of), last(whole * (part + 1) / of) {}
};

// Memory of a thread, kept for the next call; it begins at a cache line, since vectors that cross one take longer.
static float *own_memory(int64_t floats) {
  constexpr uintptr_t BYTES = LINE * sizeof(float);
  thread_local std::vector<float> memory;
  if ((int64_t)memory.size() < floats + LINE) memory.resize(floats + LINE);
  return (float *)(((uintptr_t)memory.data() + BYTES - 1) & ~(BYTES - 1));
}

// GELU: x * (1/2 + erf(x / sqrt(2)) / 2). The second term is a quotient of polynomials between -END and END, where it
// reaches -1/2 and 1/2: below, the result is 0 to the precision of floats, above, it is x. Several vectors take each
// step together, since each operation on one depends on the one before.
template <int COUNT>
static inline __attribute__((always_inline)) void gelu(Vector (&x)[COUNT]) {
  constexpr float END = 5.25f;
  constexpr float P[] = {12.142566f, 673.78687f, 10111.07f, 95661.19f, 657815.0f};
  constexpr float Q[] = {242.4702f, 5357.071f, 69920.97f, 514584.9f, 1648900.4f};
  Vector z[COUNT], s[COUNT], p[COUNT], q[COUNT];
#pragma GCC unroll 4
  for (int i = 0; i < COUNT; i++) {
    x[i] = larger(all(-END), x[i]), z[i] = smaller(all(END), x[i]), s[i] = z[i] * z[i];
    p[i] = all(P[0]);
  }
#pragma GCC unroll 4
  for (int k = 1; k < 5; k++)
#pragma GCC unroll 4
    for (int i = 0; i < COUNT; i++) p[i] = p[i] * s[i] + P[k];
#pragma GCC unroll 4
  for (int i = 0; i < COUNT; i++) q[i] = s[i] + Q[0];
#pragma GCC unroll 4
  for (int k = 1; k < 5; k++)
#pragma GCC unroll 4
    for (int i = 0; i < COUNT; i++) q[i] = q[i] * s[i] + Q[k];
#pragma GCC unroll 4
  for (int i = 0; i < COUNT; i++) x[i] *= 0.5f + z[i] * p[i] / q[i];
}

static inline Vector gelu(Vector x) {
  Vector one[1] = {x};
  gelu(one);
  return one[0];
}

// 1 / (1 + exp(-x)). The exponential is a power of two times a polynomial over half a binary place around 0; beyond
// END its own rounding is all that is left of the sum.
static inline Vector sigmoid(Vector x) {
  typedef int32_t Integers __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
  constexpr float END = 87, LOG2E = 1.44269504f, HIGH = 0.693359375f, LOW = -2.12194440e-4f;
  constexpr float P[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 0.5f};
  Vector y = smaller(all(END), larger(all(-END), -x));
  Vector shifted = y * LOG2E + 12582912.0f;  // 1.5 * 2^23, from which on floats are whole numbers
  Vector whole = shifted - 12582912.0f;
  Vector rest = (y - whole * HIGH) - whole * LOW;
  Vector p = all(P[0]);
#pragma GCC unroll 6
  for (int k = 1; k < 6; k++) p = p * rest + P[k];
  p = p * rest * rest + rest + 1.0f;
  Integers power = ((Integers)shifted - 0x4B400000 + 127) << 23;
  return 1.0f / (1.0f + p * (Vector)power);
}

// Far below 0 the result is 0 to the precision of floats, also at minus infinity.
static inline Vector silu(Vector x) {
  x = larger(all(-87), x);
  return x * sigmoid(x);
}
