/* site.h - what the administrator wrote behind the plugin in plugstack.conf:
 * url=..., timeout_ms=..., on_error=submit|abort, hw=NAME. */
#ifndef TOPT_SITE_H
#define TOPT_SITE_H

#include <stdint.h>

#include "topt_error.h"

struct topt_site {
    const char *url;      /* never NULL */
    const char *on_error; /* NULL where nothing is said */
    const char *hw;       /* NULL where nothing is said */
    int64_t timeout_ms;
};

/* Texts are borrowed from 'argv' and from 'env_url' ($TOPT_URL or NULL, which counts where
 * plugstack.conf names no url). */
int topt_site_read(int argc, char **argv, const char *env_url, struct topt_site *ret,
                   struct topt_error *err) TOPT_MUST_CHECK;

#endif
