/* Written from `records.py`, which says what the records are: a test holds that it is the same. */
#include <stdint.h>

typedef intptr_t word;
typedef int (*loop)(void *, char *const *, const word *, const word *, void *);

#define MOST_THREADS 16
#define DEPTH 6
typedef struct { loop function; void *context, *auxiliary; char *data[4]; word n, strides[4]; } row;
_Static_assert(sizeof(row) == 96, "row has another size than Python expects");
typedef struct { word object, is_scalar, size; char *target; } stage;
_Static_assert(sizeof(stage) == 32, "stage has another size than Python expects");
typedef struct { word object, offset, alignment; char **target; } patch;
_Static_assert(sizeof(patch) == 32, "patch has another size than Python expects");
typedef struct { const row *rows; word count, stage_count, patch_count, head; const stage *stages; const patch *patches; } program;
_Static_assert(sizeof(program) == 56, "program has another size than Python expects");
typedef struct { char **target; word step; } move;
_Static_assert(sizeof(move) == 16, "move has another size than Python expects");
typedef struct { const row *condition, *body; word condition_count, body_count; const char *flag; word flag_size, move_count; const move *moves; } turn;
_Static_assert(sizeof(turn) == 64, "turn has another size than Python expects");
typedef struct { loop function; void *context, *auxiliary; char *buffer; word size, filled, leaf; const word *leaves; } feed;
_Static_assert(sizeof(feed) == 64, "feed has another size than Python expects");
typedef struct { word row, operand, base, size; } part;
_Static_assert(sizeof(part) == 32, "part has another size than Python expects");
typedef struct { row *rows; feed *const *feeds; } worker;
_Static_assert(sizeof(worker) == 16, "worker has another size than Python expects");
typedef struct { word start, stop, leaf; } stretch;
_Static_assert(sizeof(stretch) == 24, "stretch has another size than Python expects");
typedef struct { word row_count, part_count, most, feed_count, worker_count; const part *parts; char *const *bases; const worker *workers; const stretch *stretches; } group;
_Static_assert(sizeof(group) == 72, "group has another size than Python expects");
typedef struct { loop function; void *context, *auxiliary; word depth, shape[6], strides[6][4]; } nest;
_Static_assert(sizeof(nest) == 272, "nest has another size than Python expects");
typedef struct { loop function; void *context, *auxiliary; word lengths[4], strides[9]; } product;
_Static_assert(sizeof(product) == 128, "product has another size than Python expects");
typedef struct { word outer, length, picked, inner, own, index_size; } take;
_Static_assert(sizeof(take) == 48, "take has another size than Python expects");

/* The number of these records, and a checksum of the C files that the library was built from: Python refuses others. */
word teletape_records(void) { return (word)1858746520u; }
#ifndef SOURCES
#define SOURCES 0
#endif
word teletape_sources(void) { return (word)SOURCES; }
