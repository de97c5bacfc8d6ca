/* The one translation unit of the native helpers. */
#include "draws.c"
#include "permute.c"
#include "compare.c"
