/* The loops for both dtypes and one kind of CPU: CPU, BYTES, MOST and ON are set before; see `loops.h`. */
#define T float
#define INT int32_t
#define SUFFIX f4
#define LOWEST (-FLT_MAX)
#include "loops.h"
#undef T
#undef INT
#undef SUFFIX
#undef LOWEST
#define T double
#define INT int64_t
#define SUFFIX f8
#define LOWEST (-DBL_MAX)
#include "loops.h"
#undef T
#undef INT
#undef SUFFIX
#undef LOWEST
#undef CPU
#undef BYTES
#undef MOST
#undef ON
