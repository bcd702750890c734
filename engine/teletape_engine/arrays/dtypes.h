/* The loops for both dtypes and one kind of CPU: what else `loops.h` needs is set before. */
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
#undef MOST_OF_ONE
#undef MOST_OF_TWO
#undef ROWS_OF_ONE
#undef ROWS_OF_TWO
#undef ON
