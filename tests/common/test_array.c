/* test_array.c - arrays keep what they hold when they grow, and when they can't. */
#include <stdlib.h>

#include "tap.h"

static int without_memory;

static void *realloc_or_not(void *p, size_t bytes)
{
    return without_memory ? NULL : realloc(p, bytes);
}

#define realloc realloc_or_not
#include "topt_array.h"

int main(void)
{
    int *at = NULL, n = 0, cap = 0, grown = 0, wrong = 0;
    for (; n < 1000; n++) {
        int before = cap;
        if (TOPT_ROOM(at, n, cap, 3))
            break;
        grown += cap != before;
        at[n] = 7 * n;
    }
    for (int i = 0; i < n; i++)
        wrong += at[i] != 7 * i;
    ok(n == 1000 && !wrong, "elements stay as they were (%d of %d wrong)", wrong, n);
    ok(cap == 3 << 9 && grown == 10, "room begins with 3 and doubles (%d, %d times)", cap,
       grown);
    int *before = at;
    without_memory = 1;
    ok(TOPT_RESIZE(at, 5000) == -1 && at == before && at[999] == 6993,
       "without memory the array stays");
    ok(TOPT_ROOM(at, cap, cap, 3) == -1 && at == before && cap == 3 << 9,
       "so does how many elements there is room for");
    without_memory = 0;
    ok(!TOPT_RESIZE(at, 0) && at, "no elements are an array, too");
    free(at);
    return done_testing();
}
