/* site.h - what the administrator wrote behind the plugin in plugstack.conf:
 * url=..., timeout_ms=..., on_error=submit|abort, hw=NAME, daemon_uid=USER, munge_socket=PATH. */
#ifndef TOPT_SITE_H
#define TOPT_SITE_H

#include <stdint.h>

#include "topt_error.h"
#include "topt_trust.h"

struct topt_site {
    const char *url;                       /* NULL where nothing is said */
    const char *on_error;                  /* NULL where nothing is said */
    const char *hw;                        /* NULL where nothing is said */
    const char *daemon_uid, *munge_socket; /* NULL where nothing is said */
    int64_t timeout_ms;
    struct topt_trust trust; /* that follows; of topt_site_find */
    char found[512];         /* url that was looked for */
};

/* Texts are borrowed from 'argv'. */
int topt_site_read(int argc, char **argv, struct topt_site *ret,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* Where plugstack.conf names no url, toptd is looked for as all who ask it do (topt_place.h);
 * NOTFOUND where it is nowhere.  And who is believed to be toptd. */
int topt_site_find(struct topt_site *site, struct topt_error *err) TOPT_MUST_CHECK;

#endif
