/* refused.h - documents that must be refused, each with the words that its error has. */
#ifndef TOPT_TEST_REFUSED_H
#define TOPT_TEST_REFUSED_H

#include "tap.h"
#include "topt_hw.h"

#include <string.h>

/* 'parse' makes a profile of a part of a document. */
static void all_refused(struct topt_hw *(*parse)(const char *part,
                                                 struct topt_error *err),
                        const char *const wrong[][2], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct topt_error err = {0};
        struct topt_hw *hw = parse(wrong[i][0], &err);
        ok(!hw && strstr(err.text, wrong[i][1]), "%s", err.text);
        topt_hw_destroy(hw);
    }
}

#endif
