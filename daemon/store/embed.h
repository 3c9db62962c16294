/* embed.h - files of the source tree that are built into the program. */
#ifndef TOPTD_EMBED_H
#define TOPTD_EMBED_H

struct embedded {
    const char *name, *text;
};

extern const char dashboard_html[], dashboard_js[], dashboard_css[];
extern const char openapi_json[];
extern const struct embedded migrations[]; /* by number; ended by a NULL name */

#endif
