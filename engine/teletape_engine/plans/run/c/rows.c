/* Walks rows, each one inner loop of NumPy over memory. Needs no headers of Python or NumPy.

   All functions that rows name have the signature of NumPy's strided loops: (context, data, n, strides, auxiliary data).
   Loops of NumPy that release nothing and touch no Python object are called without the GIL. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "records.h"

int teletape_run(const row *rows, long count) {
  for (long i = 0; i < count; i++) {
    const row *r = rows + i;
    if (r->function(r->context, r->data, &r->n, r->strides, r->auxiliary)) return -1;
  }
  return 0;
}

/* What a run begins with. Objects are NumPy's arrays and scalars, by their addresses: an array has the address of its
   elements where a scalar has its number, after the `head` of every object. `loaded.py` checks that it is so. */
int teletape_begin(const program *p, char *const *objects) {
  for (word i = 0; i < p->stage_count; i++) {
    const stage *s = p->stages + i;
    const char *own = objects[s->object] + p->head;
    memcpy(s->target, s->is_scalar ? own : *(char *const *)own, (size_t)s->size);
  }
  for (word i = 0; i < p->patch_count; i++) {
    const patch *t = p->patches + i;
    char *data = *(char **)(objects[t->object] + p->head);
    if ((uintptr_t)data % (uintptr_t)t->alignment) return 1;
    *t->target = data + t->offset;
  }
  return 0;
}

/* A whole plan in one call: 1 if an array is not aligned, -1 if a loop has failed. */
int teletape_call(const program *p, char *const *objects) {
  int misaligned = teletape_begin(p, objects);
  return misaligned ? misaligned : teletape_run(p->rows, (long)p->count);
}

static int is_zero(const char *flag, word size) {
  for (word i = 0; i < size; i++)
    if (flag[i]) return 0;
  return 1;
}

/* Makes iterations, `most` of them at the most, and counts them: 0 if the condition has become false, -1 if a loop of
   NumPy has failed, else 1. */
int teletape_loop_of(const turn *t, word most, word *count) {
  for (*count = 0; *count < most; ++*count) {
    if (teletape_run(t->condition, (long)t->condition_count)) return -1;
    if (t->flag && is_zero(t->flag, t->flag_size)) return 0;
    if (teletape_run(t->body, (long)t->body_count)) return -1;
    for (word i = 0; i < t->move_count; i++) *t->moves[i].target += t->moves[i].step;
  }
  return 1;
}

/* A sum over all elements, of which the row gets those of one tile: they wait in a buffer until there are as many as a
   leaf of the tree below has. The list of leaves ends with 0. */
int teletape_fed(void *context, char *const *data, const word *n, const word *strides, void *auxiliary) {
  feed *f = context;
  char *at = f->buffer;
  (void)strides, (void)auxiliary;
  memcpy(at + f->filled * f->size, data[0], (size_t)(*n * f->size));
  f->filled += *n;
  for (word length; (length = f->leaves[f->leaf]) && f->filled >= length; f->leaf++) {
    char *sum = data[1] + f->leaf * f->size;
    char *operands[3] = {sum, at, sum};
    word steps[3] = {0, f->size, 0};
    memset(sum, 0, (size_t)f->size);
    if (f->function(f->context, operands, &length, steps, f->auxiliary)) return -1;
    at += f->leaves[f->leaf] * f->size;
    f->filled -= f->leaves[f->leaf];
  }
  memmove(f->buffer, at, (size_t)(f->filled * f->size));
  return 0;
}

/* Rows that run tile by tile; `operand` 4 is the row's length. The other addresses move on by elements. Each thread has
   rows of its own, with its own memory for what lies between them, and its own sums. */
static int run_stretch(const group *g, const worker *w, const stretch *s) {
  for (word i = 0; s->leaf >= 0 && i < g->feed_count; i++) {
    w->feeds[i]->filled = 0;
    w->feeds[i]->leaf = s->leaf;
  }
  for (word start = s->start; start < s->stop; start += g->most) {
    word length = s->stop - start < g->most ? s->stop - start : g->most;
    for (word i = 0; i < g->part_count; i++) {
      const part *p = g->parts + i;
      if (p->operand == 4)
        w->rows[p->row].n = length;
      else
        w->rows[p->row].data[p->operand] = g->bases[p->base] + start * p->size;
    }
    if (teletape_run(w->rows, (long)g->row_count)) return -1;
  }
  return 0;
}

/* Stretches that threads share: each takes the next one until there is none. */
typedef struct {
  const group *group;
  word stop, next, failed;
} shared;
typedef struct {
  shared *shared;
  const worker *worker;
} job;

static void *work(void *context) {
  job *j = context;
  shared *s = j->shared;
  for (word at; (at = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED)) < s->stop;)
    if (run_stretch(s->group, j->worker, s->group->stretches + at)) __atomic_store_n(&s->failed, 1, __ATOMIC_RELAXED);
  return 0;
}

/* The count is that of stretches; the first stride is the number of the first one. Threads end with the call, so that a
   fork finds none; they get no signals. A thread that cannot start is done without. */
int teletape_tiles(void *context, char *const *data, const word *n, const word *strides, void *auxiliary) {
  const group *g = context;
  shared s = {g, strides[0] + *n, strides[0], 0};
  job jobs[MOST_THREADS];
  pthread_t threads[MOST_THREADS];
  word wanted = g->worker_count < *n ? g->worker_count : *n, count = 0;
  (void)data, (void)auxiliary;
  if (wanted > MOST_THREADS) wanted = MOST_THREADS;
  if (wanted > 1) {
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    if (!pthread_attr_init(&attributes)) {
      pthread_attr_setstacksize(&attributes, 1 << 20);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      for (; count < wanted - 1; count++) {
        jobs[count] = (job){&s, g->workers + 1 + count};
        if (pthread_create(&threads[count], &attributes, work, &jobs[count])) break;
      }
      pthread_sigmask(SIG_SETMASK, &before, 0);
      pthread_attr_destroy(&attributes);
    }
  }
  job own = {&s, g->workers};
  work(&own);
  while (count) pthread_join(threads[--count], 0);
  return s.failed ? -1 : 0;
}

/* Adds the sums of leaves as NumPy's pairwise sum adds halves; the context is the length, a stride the most elements of a
   leaf. */
#define TREE(T, name)                                                                                        \
  static T total_##name(const T **next, word n, word most) {                                                 \
    if (n <= most) return *(*next)++;                                                                        \
    word half = n / 2;                                                                                       \
    half -= half % 8;                                                                                        \
    T first = total_##name(next, half, most);                                                                \
    return first + total_##name(next, n - half, most);                                                       \
  }                                                                                                          \
  int teletape_tree_##name(void *context, char *const *data, const word *n, const word *strides, void *auxiliary) { \
    const T *next = (const T *)data[0];                                                                      \
    (void)n, (void)auxiliary;                                                                                \
    *(T *)data[1] = (T)0 + total_##name(&next, (word)context, strides[0]);                                   \
    return 0;                                                                                                \
  }
TREE(float, f4)
TREE(double, f8)

/* A loop inside up to six outer ones; its context is a `nest`. */
int teletape_nest(void *context, char *const *data, const word *n, const word *strides, void *auxiliary) {
  const nest *q = context;
  char *at[4];
  word index[DEPTH] = {0};
  (void)auxiliary;
  memcpy(at, data, sizeof at);
  for (;;) {
    char *moved[4];
    memcpy(moved, at, sizeof at);
    if (q->function(q->context, moved, n, strides, q->auxiliary)) return -1;
    long k = (long)q->depth - 1;
    for (; k >= 0; k--) {
      if (++index[k] < q->shape[k]) {
        for (int j = 0; j < 4; j++) at[j] += q->strides[k][j];
        break;
      }
      for (int j = 0; j < 4; j++) at[j] -= q->strides[k][j] * (q->shape[k] - 1);
      index[k] = 0;
    }
    if (k < 0) return 0;
  }
}

/* A product of matrices, or of a stack of them; its context is a `product`. Such loops move the pointers that they are
   given, so they get copies. */
int teletape_product(void *context, char *const *data, const word *n, const word *strides, void *auxiliary) {
  const product *q = context;
  char *at[3] = {data[0], data[1], data[2]};
  (void)n, (void)strides, (void)auxiliary;
  return q->function(q->context, at, q->lengths, q->strides, q->auxiliary);
}

/* Copies elements; the context is their size in bytes. */
#define COPIES(T)                                                                       \
  {                                                                                     \
    for (word i = 0; i < n; i++) memcpy(d[1] + i * s[1], d[0] + i * s[0], sizeof(T));   \
    return 0;                                                                           \
  }
typedef struct { uint64_t parts[2]; } wide;

int teletape_copy(void *context, char *const *d, const word *count, const word *s, void *auxiliary) {
  word n = *count, size = (word)context;
  (void)auxiliary;
  if (s[0] == size && s[1] == size) {
    memmove(d[1], d[0], (size_t)(n * size));
    return 0;
  }
  switch (size) {
    case 1: COPIES(uint8_t)
    case 2: COPIES(uint16_t)
    case 4: COPIES(uint32_t)
    case 8: COPIES(uint64_t)
    case 16: COPIES(wide)
  }
  return -1;
}

/* Fails unless all elements, of type bool, are true. */
int teletape_all_true(void *context, char *const *d, const word *count, const word *s, void *auxiliary) {
  (void)context, (void)auxiliary;
  for (word i = 0; i < *count; i++)
    if (!d[0][i * s[0]]) return -1;
  return 0;
}

/* Entries of an array at indices: d[2] = d[0][:, d[1]]; fails if an index is outside. See `lower/taking.py`. */
int teletape_take(void *context, char *const *d, const word *count, const word *s, void *auxiliary) {
  const take *q = context;
  char *out = d[2];
  (void)count, (void)s, (void)auxiliary;
  for (word o = 0; o < q->outer; o++) {
    const char *from = d[0] + o * q->length * q->inner;
    word first = q->own ? o * q->picked : 0;
    for (word i = first; i < first + q->picked; i++, out += q->inner) {
      word at = q->index_size == 4 ? (word)((const int32_t *)d[1])[i] : (word)((const int64_t *)d[1])[i];
      if (at < 0 || at >= q->length) return -1;
      memcpy(out, from + at * q->inner, (size_t)q->inner);
    }
  }
  return 0;
}

/* Fills bytes with what is no number. */
int teletape_fill(void *context, char *const *d, const word *count, const word *s, void *auxiliary) {
  (void)context, (void)s, (void)auxiliary;
  memset(d[0], 0xFF, (size_t)*count);
  return 0;
}

/* d[3] = d[0] ? d[1] : d[2]; the context is the size of an element in bytes. */
#define SELECTS(T)                                                                                              \
  {                                                                                                             \
    for (word i = 0; i < n; i++) {                                                                              \
      const char *from = *(const uint8_t *)(d[0] + i * s[0]) ? d[1] + i * s[1] : d[2] + i * s[2];               \
      memcpy(d[3] + i * s[3], from, sizeof(T));                                                                 \
    }                                                                                                           \
    return 0;                                                                                                   \
  }

int teletape_choose(void *context, char *const *d, const word *count, const word *s, void *auxiliary) {
  word n = *count;
  (void)auxiliary;
  switch ((word)context) {
    case 1: SELECTS(uint8_t)
    case 2: SELECTS(uint16_t)
    case 4: SELECTS(uint32_t)
    case 8: SELECTS(uint64_t)
    case 16: SELECTS(wide)
  }
  return -1;
}

/* Conversions in which every value of the one type is a value of the other, or is rounded; and to bool. */
#define CONVERTS(A, B)                                                                                          \
  int teletape_cast_##A##_##B(void *context, char *const *d, const word *count, const word *s, void *auxiliary) { \
    (void)context, (void)auxiliary;                                                                             \
    for (word i = 0; i < *count; i++) *(B *)(d[1] + i * s[1]) = (B) * (A *)(d[0] + i * s[0]);                   \
    return 0;                                                                                                   \
  }
typedef _Bool b1;
typedef int8_t i1;
typedef uint8_t u1;
typedef int16_t i2;
typedef int32_t i4;
typedef int64_t i8;
typedef float f4;
typedef double f8;
#define INTEGERS(A) CONVERTS(A, b1) CONVERTS(A, u1) CONVERTS(A, i1) CONVERTS(A, i2) CONVERTS(A, i4) CONVERTS(A, i8)
#define FLOATS(A) CONVERTS(A, f4) CONVERTS(A, f8)
INTEGERS(b1) INTEGERS(u1) INTEGERS(i1) INTEGERS(i2) INTEGERS(i4) INTEGERS(i8)
FLOATS(b1) FLOATS(u1) FLOATS(i1) FLOATS(i2) FLOATS(i4) FLOATS(i8) FLOATS(f4) FLOATS(f8)
CONVERTS(f4, b1) CONVERTS(f8, b1)
