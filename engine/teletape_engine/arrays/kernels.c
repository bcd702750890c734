/* Loops of convolution and pooling on images [n, height, width, channels], of rectifiers and recurrences. Needs no headers of Python
   or NumPy.

   Every exported kernel has the signature of the loops of `plans/run/c/rows.c`; its context is a `geometry`, the number of
   elements or `lines`, and its arrays are row-major and aligned. It returns -1 if there is no memory. `kernels.py` checks
   that the windows lie inside the images and their border, so that no index needs a check here. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "records.h"

#define SUMMED 512 /* windows that are summed one after the other: a longer sum would lose digits */

static void *allocated(word count, size_t size) {
  size_t bytes = ((size_t)count * size + 63) / 64 * 64;
  return aligned_alloc(64, bytes ? bytes : 64);
}

/* For each element of a window its distance from the first, in the order of the filters. */
static void steps_of_window(const geometry *g, word *steps) {
  for (word i = 0; i < g->rows; i++)
    for (word j = 0; j < g->columns; j++)
      for (word c = 0; c < g->channels; c++)
        *steps++ = (i * g->row_dilation * g->whole_width + j * g->column_dilation) * g->channels + c;
}

/* All loops, for each kind of CPU: with vectors of 64 bytes and 32 registers, of 32 bytes and 16, and what any CPU of
   this architecture has. */
#define JOIN(a, b, c) a##_##b##_##c
#define JOINED(a, b, c) JOIN(a, b, c)
#define NAME(x) JOINED(x, SUFFIX, CPU)
#define SIX(of) of(1) of(2) of(3) of(4) of(5) of(6)
#define TWELVE(of) SIX(of) of(7) of(8) of(9) of(10) of(11) of(12)
#define FOURTEEN(of) TWELVE(of) of(13) of(14)
#if defined(__x86_64__)
#define CPU v4
#define BYTES 64
#define MOST_OF_ONE 14
#define MOST_OF_TWO 14
#define ROWS_OF_ONE FOURTEEN
#define ROWS_OF_TWO FOURTEEN
#define ON __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")))
#include "dtypes.h"
#define CPU v3
#define BYTES 32
#define MOST_OF_ONE 12
#define MOST_OF_TWO 6
#define ROWS_OF_ONE TWELVE
#define ROWS_OF_TWO SIX
#define ON __attribute__((target("avx2,fma")))
#include "dtypes.h"
#endif
#define CPU v1
#define BYTES 16
#define MOST_OF_ONE 12
#define MOST_OF_TWO 6
#define ROWS_OF_ONE TWELVE
#define ROWS_OF_TWO SIX
#define ON
#include "dtypes.h"

static word most_level = 4;

/* The kind of CPU whose loops run: 4 or 3 of x86-64, or 1. */
static word level(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (most_level >= 4 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    return 4;
  if (most_level >= 3 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 3;
#endif
  return 1;
}

/* No other than those of this kind: NumPy's setting, and tests; and which one it is. */
void teletape_limit_level(word most) { most_level = most; }
word teletape_level(void) { return level(); }

/* The same for a convolution: with few outputs two vectors of 32 bytes are used better than one or two of 64, unless
   there is so little to sum that larger blocks count for more. */
static word level_for(const geometry *g, word size) {
  word lanes = 64 / size, left = g->out % (2 * lanes);
  int narrow = left && (left <= lanes / 2 || left >= lanes) && g->rows * g->columns * g->channels >= 16;
  return level() == 4 && narrow ? 3 : level();
}

#if defined(__x86_64__)
#define OF_LEVEL(level, name, ...)                                                                     \
  switch (level) {                                                                                     \
    case 4: return name##_v4(__VA_ARGS__);                                                             \
    case 3: return name##_v3(__VA_ARGS__);                                                             \
  }                                                                                                    \
  return name##_v1(__VA_ARGS__);
#else
#define OF_LEVEL(level, name, ...) return (void)(level), name##_v1(__VA_ARGS__);
#endif
#define KERNEL(name, level, ...)                                                                       \
  int teletape_##name(void *context, char *const *data, const word *n, const word *strides, void *auxiliary) { \
    (void)n, (void)strides, (void)auxiliary;                                                           \
    OF_LEVEL(level, name, __VA_ARGS__)                                                                        \
  }
#define OUTPUTS(T) level_for(context, sizeof(T))
#define KERNELS(T, suffix)                                                                             \
  KERNEL(convolve_##suffix, OUTPUTS(T), context, (T *)data[0], (T *)data[1], (T *)data[2])             \
  KERNEL(convolve_filters_##suffix, OUTPUTS(T), context, (T *)data[0], (T *)data[1], (T *)data[2])     \
  KERNEL(max_pool_##suffix, level(), context, (T *)data[0], (T *)data[1])                              \
  KERNEL(max_pool_grad_##suffix, level(), context, (T *)data[0], (T *)data[1], (T *)data[2])           \
  KERNEL(max_pool_pick_##suffix, level(), context, (T *)data[0], (T *)data[1], (T *)data[2])           \
  KERNEL(relu_##suffix, level(), context, (T *)data[0], (T *)data[1])                                  \
  KERNEL(relu_grad_##suffix, level(), context, (T *)data[0], (T *)data[1], (T *)data[2])               \
  KERNEL(tanh_grad_##suffix, level(), context, (T *)data[0], (T *)data[1], (T *)data[2], (T *)data[3]) \
  KERNEL(recurrence_##suffix, level(), context, (T *)data[0], (T *)data[1], (T *)data[2])
KERNELS(float, f4)
KERNELS(double, f8)
