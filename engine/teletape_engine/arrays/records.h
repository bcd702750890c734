/* Written from `kernels.py`, which says what the records are: a test holds that it is the same. */
#include <stdint.h>

typedef intptr_t word;
typedef int (*loop)(void *, char *const *, const word *, const word *, void *);

typedef struct { word images, height, width, channels, out, rows, columns, count_rows, count_columns, row_stride, column_stride, row_dilation, column_dilation, top, left, whole_height, whole_width, turned, apart; } geometry;
_Static_assert(sizeof(geometry) == 152, "geometry has another size than Python expects");
typedef struct { word outer, length, inner, backward, own; } lines;
_Static_assert(sizeof(lines) == 40, "lines has another size than Python expects");

/* The number of these records, and a checksum of the C files that the library was built from: Python refuses others. */
word teletape_records(void) { return (word)3550133347u; }
#ifndef SOURCES
#define SOURCES 0
#endif
word teletape_sources(void) { return (word)SOURCES; }
