/* one_line.h - text from anywhere as one line of valid UTF-8.  Thread safety: reentrant. */
#ifndef TOPTD_ONE_LINE_H
#define TOPTD_ONE_LINE_H

#include <stddef.h>

/* 'src' cut to 'size', its NUL counted. */
void one_line(const char *src, char *dst, size_t size);

#endif
