/* The loops of `kernels.c` for one dtype and one kind of CPU. Set before it is included: T, INT (an integer of the same
   size), NAME(x), BYTES of a vector, ON (an attribute of functions: the CPU's instructions), and how many rows a block of one
   vector and of two vectors has at the most: MOST_OF_ONE and MOST_OF_TWO, ROWS_OF_ONE(x) and ROWS_OF_TWO(x). */
#define MOST MOST_OF_ONE /* the larger one */
#define LANES ((word)(BYTES / sizeof(T)))
typedef T NAME(vec) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
typedef INT NAME(mask) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
#define VEC NAME(vec)
#define MASK NAME(mask)
#define INLINE static inline __attribute__((always_inline)) ON

/* y[m, v] (+)= sum over k of rows[m][steps[k]] * b[k, v], for m rows and v vectors: both constants where it is inlined. */
INLINE void NAME(block)(const int m, const int v, const T *const *rows, const word *steps, word count, const T *b,
                        word b_step, T *y, word y_step, const int adds) {
  VEC sums[MOST * 2];
  const T *row[MOST];
  for (int i = 0; i < m; i++) row[i] = rows[i];
  for (int i = 0; i < m * v; i++) sums[i] = (VEC){0};
  for (word k = 0; k < count; k++, b += b_step) {
    word step = steps[k];
    VEC factors[2];
    for (int j = 0; j < v; j++) factors[j] = *(const VEC *)(b + j * LANES);
    for (int i = 0; i < m; i++)
      for (int j = 0; j < v; j++) sums[i * v + j] += factors[j] * row[i][step];
  }
  for (int i = 0; i < m; i++)
    for (int j = 0; j < v; j++) {
      VEC *at = (VEC *)(y + i * y_step + j * LANES);
      if (adds) sums[i * v + j] += *at;
      *at = sums[i * v + j];
    }
}

#define ONE(m) \
  case m: NAME(block)(m, 1, rows, steps, count, b, b_step, y, y_step, adds); break;
#define TWO(m) \
  case m: NAME(block)(m, 2, rows, steps, count, b, b_step, y, y_step, adds); break;
#define BLOCKS(name, adds_)                                                                                  \
  static ON void NAME(name)(int m, int v, const T *const *rows, const word *steps, word count, const T *b,   \
                            word b_step, T *y, word y_step) {                                                \
    const int adds = adds_;                                                                                  \
    if (v == 1)                                                                                              \
      switch (m) { ROWS_OF_ONE(ONE) }                                                                        \
    else                                                                                                     \
      switch (m) { ROWS_OF_TWO(TWO) }                                                                        \
  }
BLOCKS(product, 0)
BLOCKS(addition, 1)
#undef ONE
#undef TWO
#undef BLOCKS

/* One image with a border of zeros, or the image itself if it has none. */
static ON const T *NAME(bordered)(const geometry *g, const T *image, T *room) {
  word width = g->width * g->channels, whole = g->whole_width * g->channels;
  if (g->height == g->whole_height && g->width == g->whole_width) return image;
  memset(room, 0, (size_t)(g->whole_height * whole) * sizeof(T));
  for (word i = 0; i < g->height; i++)
    memcpy(room + (i + g->top) * whole + g->left * g->channels, image + i * width, (size_t)width * sizeof(T));
  return room;
}

/* The filters of `lanes` outputs from `first` on, one row for each element of a window, filled up with zeros. If turned,
   those of the transpose: from outputs to inputs, by half a turn. */
static ON void NAME(packed)(const geometry *g, const T *filters, word first, word lanes, T *room) {
  word places = g->rows * g->columns, width = g->out - first < lanes ? g->out - first : lanes;
  for (word place = 0; place < places; place++)
    for (word c = 0; c < g->channels; c++, room += lanes) {
      if (g->turned) {
        const T *from = filters + ((places - 1 - place) * g->out + first) * g->channels + c;
        for (word o = 0; o < width; o++) room[o] = from[o * g->channels];
      } else
        memcpy(room, filters + (place * g->channels + c) * g->out + first, (size_t)width * sizeof(T));
      if (width < lanes) memset(room + width, 0, (size_t)(lanes - width) * sizeof(T));
    }
}

static ON int NAME(convolve)(const geometry *g, const T *images, const T *filters, T *y) {
  word taps = g->rows * g->columns * g->channels, count = g->count_rows * g->count_columns;
  word size = g->height * g->width * g->channels, pitch = g->whole_width * g->channels;
  word most = 2 * LANES;
  T *border = allocated(g->whole_height * pitch, sizeof(T)), *weights = allocated(taps * most, sizeof(T));
  word *steps = allocated(taps, sizeof(word));
  T rest[MOST * LANES];
  if (!border || !weights || !steps) {
    free(border), free(weights), free(steps);
    return -1;
  }
  steps_of_window(g, steps);
  for (word first = 0; first < g->out;) {
    word left = g->out - first;
    int v = left > LANES ? 2 : 1, whole = left >= v * LANES;
    if (!whole && v == 2) v = whole = 1;
    word blocks = v == 2 ? (count + MOST_OF_TWO - 1) / MOST_OF_TWO : (count + MOST_OF_ONE - 1) / MOST_OF_ONE;
    NAME(packed)(g, filters, first, v * LANES, weights);
    for (word n = 0; n < g->images; n++) {
      const T *x = NAME(bordered)(g, images + n * size, border);
      T *into = y + n * count * g->out + first;
      word i = 0, j = 0, at = 0;
      for (word k = 0; k < blocks; k++) {
        const T *rows[MOST];
        int m = (int)((k + 1) * count / blocks - at);
        for (int r = 0; r < m; r++) {
          rows[r] = x + i * g->row_stride * pitch + j * g->column_stride * g->channels;
          if (++j == g->count_columns) j = 0, i++;
        }
        if (whole)
          NAME(product)(m, v, rows, steps, taps, weights, v * LANES, into + at * g->out, g->out);
        else {
          NAME(product)(m, 1, rows, steps, taps, weights, LANES, rest, LANES);
          for (int r = 0; r < m; r++) memcpy(into + (at + r) * g->out, rest + r * LANES, (size_t)left * sizeof(T));
        }
        at += m;
      }
    }
    first += v * LANES;
  }
  free(border), free(weights), free(steps);
  return 0;
}

/* The transpose with respect to the filters: sums over some rows of windows at a time. */
static ON int NAME(convolve_filters)(const geometry *g, const T *images, const T *grads, T *y) {
  word taps = g->rows * g->columns * g->channels, count = g->count_rows * g->count_columns;
  word size = g->height * g->width * g->channels, pitch = g->whole_width * g->channels;
  word lines = g->count_columns < SUMMED ? SUMMED / g->count_columns : 1;
  if (lines > g->count_rows) lines = g->count_rows;
  word *steps = allocated(lines * g->count_columns, sizeof(word)), *places = allocated(taps, sizeof(word));
  T *border = allocated(g->whole_height * pitch, sizeof(T));
  T *part = allocated(lines * g->count_columns * LANES, sizeof(T));
  T rest[MOST * LANES];
  if (!border || !part || !steps || !places) {
    free(border), free(part), free(steps), free(places);
    return -1;
  }
  steps_of_window(g, places);
  for (word i = 0; i < lines; i++)
    for (word j = 0; j < g->count_columns; j++)
      steps[i * g->count_columns + j] = i * g->row_stride * pitch + j * g->column_stride * g->channels;
  memset(y, 0, (size_t)(taps * g->out) * sizeof(T));
  for (word n = 0; n < g->images; n++) {
    const T *x = NAME(bordered)(g, images + n * size, border);
    for (word line = 0; line < g->count_rows; line += lines) {
      word k = (line + lines < g->count_rows ? lines : g->count_rows - line) * g->count_columns;
      const T *corner = x + line * g->row_stride * pitch;
      const T *ct = grads + (n * count + line * g->count_columns) * g->out;
      for (word first = 0; first < g->out;) {
        word left = g->out - first;
        int v = left > LANES ? 2 : 1, whole = left >= v * LANES;
        if (!whole && v == 2) v = whole = 1;
        const T *b = ct + first;
        word b_step = g->out;
        if (!whole) {
          for (word i = 0; i < k; i++) {
            memset(part + i * LANES + left, 0, (size_t)(LANES - left) * sizeof(T));
            memcpy(part + i * LANES, b + i * g->out, (size_t)left * sizeof(T));
          }
          b = part, b_step = LANES;
        }
        word blocks = v == 2 ? (taps + MOST_OF_TWO - 1) / MOST_OF_TWO : (taps + MOST_OF_ONE - 1) / MOST_OF_ONE;
        word at = 0;
        for (word block = 0; block < blocks; block++) {
          const T *rows[MOST];
          int m = (int)((block + 1) * taps / blocks - at);
          for (int r = 0; r < m; r++) rows[r] = corner + places[at + r];
          T *into = y + at * g->out + first;
          if (whole)
            NAME(addition)(m, v, rows, steps, k, b, b_step, into, g->out);
          else {
            NAME(product)(m, 1, rows, steps, k, b, b_step, rest, LANES);
            for (int r = 0; r < m; r++)
              for (word o = 0; o < left; o++) into[r * g->out + o] += rest[r * LANES + o];
          }
          at += m;
        }
        first += v * LANES;
      }
    }
  }
  free(border), free(part), free(steps), free(places);
  return 0;
}

/* ------------------------------------------------------------------------------------------------------------ pooling */
INLINE VEC NAME(chosen)(MASK which, VEC a, VEC b) { return (VEC)((which & (MASK)a) | (~which & (MASK)b)); }

/* What a pool does with a window: the largest element; its gradient at the first largest; the tangent there. */
enum { NAME(LARGEST), NAME(SPREAD), NAME(PICKED) };

INLINE void NAME(window)(const int what, const T *x, const T *other, T *y, word rows, word columns, word pitch,
                         word channels, const int apart) {
  word c = 0;
  for (; c + LANES <= channels; c += LANES) {
    VEC best = (VEC){0} + LOWEST;
    MASK place = (MASK){0} - 1;
    INT number = 0;
    for (word i = 0; i < rows; i++)
      for (word j = 0; j < columns; j++, number++) {
        VEC each = *(const VEC *)(x + i * pitch + j * channels + c);
        MASK larger = each > best;
        best = NAME(chosen)(larger, each, best);
        if (what != NAME(LARGEST)) place = (larger & ((MASK){0} + number)) | (~larger & place);
      }
    if (what == NAME(LARGEST)) *(VEC *)(y + c) = best;
    if (what == NAME(LARGEST)) continue;
    VEC grad = what == NAME(SPREAD) ? *(const VEC *)(other + c) : (VEC){0};
    number = 0;
    for (word i = 0; i < rows; i++)
      for (word j = 0; j < columns; j++, number++) {
        MASK here = place == (MASK){0} + number;
        if (what == NAME(SPREAD)) {
          VEC *at = (VEC *)(y + i * pitch + j * channels + c);
          VEC share = (VEC)(here & (MASK)grad);
          if (!apart) share += *at;
          *at = share;
        } else
          grad = NAME(chosen)(here, *(const VEC *)(other + i * pitch + j * channels + c), grad);
      }
    if (what == NAME(PICKED)) *(VEC *)(y + c) = grad;
  }
  for (; c < channels; c++) {
    T best = LOWEST;
    word place = -1;
    for (word i = 0; i < rows; i++)
      for (word j = 0; j < columns; j++) {
        word at = i * pitch + j * channels + c;
        if (x[at] > best) best = x[at], place = at;
        if (what == NAME(SPREAD) && apart) y[at] = 0;
      }
    if (what == NAME(LARGEST))
      y[c] = best;
    else if (what == NAME(PICKED))
      y[c] = place < 0 ? 0 : other[place];
    else if (place >= 0)
      y[place] += other[c];
  }
}

INLINE int NAME(pool)(const geometry *g, const int what, const T *x, const T *other, T *y) {
  word pitch = g->width * g->channels, size = g->height * pitch;
  /* Whether the windows cover every element: with a border before the first one they are shifted, and do not. */
  int everywhere = g->apart && !g->top && !g->left && g->count_rows * g->row_stride == g->height &&
                   g->rows == g->row_stride && g->count_columns * g->column_stride == g->width && g->columns == g->column_stride;
  if (what == NAME(SPREAD) && !everywhere) memset(y, 0, (size_t)(g->images * size) * sizeof(T));
  for (word n = 0; n < g->images; n++)
    for (word i = 0; i < g->count_rows; i++) {
      word top = i * g->row_stride - g->top, bottom = top + g->rows;
      if (top < 0) top = 0;
      if (bottom > g->height) bottom = g->height;
      for (word j = 0; j < g->count_columns; j++) {
        word left = j * g->column_stride - g->left, right = left + g->columns;
        if (left < 0) left = 0;
        if (right > g->width) right = g->width;
        word rows = bottom - top, columns = right - left;
        word start = rows > 0 && columns > 0 ? n * size + top * pitch + left * g->channels : 0;
        word pooled = ((n * g->count_rows + i) * g->count_columns + j) * g->channels;
        if (what == NAME(LARGEST))
          NAME(window)(what, x + start, 0, y + pooled, rows, columns, pitch, g->channels, 0);
        else if (what == NAME(PICKED))
          NAME(window)(what, x + start, other + start, y + pooled, rows, columns, pitch, g->channels, 0);
        else if (g->apart)
          NAME(window)(what, x + start, other + pooled, y + start, rows, columns, pitch, g->channels, 1);
        else
          NAME(window)(what, x + start, other + pooled, y + start, rows, columns, pitch, g->channels, 0);
      }
    }
  return 0;
}
static ON int NAME(max_pool)(const geometry *g, const T *x, T *y) { return NAME(pool)(g, NAME(LARGEST), x, 0, y); }
static ON int NAME(max_pool_grad)(const geometry *g, const T *grad, const T *x, T *y) {
  return NAME(pool)(g, NAME(SPREAD), x, grad, y);
}
static ON int NAME(max_pool_pick)(const geometry *g, const T *t, const T *x, T *y) {
  return NAME(pool)(g, NAME(PICKED), x, t, y);
}

/* -------------------------------------------------------------------------------------------------------- elementwise */
static ON int NAME(relu)(const word *count, const T *x, T *y) {
  for (word i = 0; i < *count; i++) y[i] = x[i] <= 0 ? 0 : x[i];
  return 0;
}

static ON int NAME(relu_grad)(const word *count, const T *grad, const T *y, T *out) {
  for (word i = 0; i < *count; i++) out[i] = grad[i] * (T)(y[i] > 0);
  return 0;
}

/* grad * (1 - y * y), where y is tanh x; near 1 from x, since y has few digits of 1 - y there. */
static ON int NAME(tanh_grad)(const word *count, const T *grad, const T *x, const T *y, T *out) {
  for (word i = 0; i < *count; i += 64) {
    word end = i + 64 < *count ? i + 64 : *count;
    INT near = 0;
    for (word j = i; j < end; j++) {
      T rest = 1 - y[j] * y[j];
      near |= rest < (T)0.001;
      out[j] = grad[j] * rest;
    }
    if (near)
      for (word j = i; j < end; j++)
        if (1 - y[j] * y[j] < (T)0.001) {
          T small = (T)exp(-2 * fabs((double)x[j]));
          out[j] = grad[j] * (4 * small / ((1 + small) * (1 + small)));
        }
  }
  return 0;
}

/* y = x + factor * the y before it, along each line, with 0 before the first. */
static ON int NAME(recurrence)(const lines *g, const T *x, const T *factors, T *y) {
  const word step = g->backward ? -g->inner : g->inner, first = g->backward ? (g->length - 1) * g->inner : 0;
  const word factor = g->own ? 0 : -step;
  for (word i = 0; i < g->outer; i++, x += g->length * g->inner, factors += g->length * g->inner, y += g->length * g->inner) {
    memcpy(y + first, x + first, (size_t)g->inner * sizeof(T));
    for (word k = 1, at = first + step; k < g->length; k++, at += step)
      for (word j = at; j < at + g->inner; j++) y[j] = x[j] + factors[j + factor] * y[j - step];
  }
  return 0;
}

#undef LANES
#undef MOST
#undef VEC
#undef MASK
#undef INLINE
