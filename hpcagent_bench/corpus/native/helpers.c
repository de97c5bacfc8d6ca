/* The one translation unit of the native helpers. */
#include "draws.c"
#include "normal.c"
#include "narrow.c"
#include "permute.c"
#include "offsets.c"
#include "compare.c"
