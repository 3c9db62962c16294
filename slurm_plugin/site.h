/* site.h - what the administrator wrote behind the plugin in plugstack.conf:
 * url=..., timeout_ms=..., daemon_uid=USER, munge_socket=PATH, report=1, and options of sbatch
 * as OPTION=VALUE (hw=NAME is --topt-hw) for jobs that say nothing else. */
#ifndef TOPT_SITE_H
#define TOPT_SITE_H

#include <stdint.h>

#include "ask.h"
#include "topt_error.h"
#include "topt_trust.h"

struct topt_site {
    const char *url;                       /* NULL where nothing is said */
    const char *usual[TOPT_ASK_COUNT];     /* of options; NULL where nothing is said */
    const char *daemon_uid, *munge_socket; /* NULL where nothing is said */
    int64_t timeout_ms;
    int64_t report; /* a job's output says at its end what was predicted and seen */
    struct topt_trust trust; /* that follows; of topt_site_find */
    char found[512];         /* url that was looked for */
};

/* Texts are borrowed from 'argv'. */
int topt_site_read(int argc, char **argv, struct topt_site *ret,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* The same for report= alone, in the job: 0 where nothing is said, or a word isn't understood. */
int topt_site_reports(int argc, char **argv);

/* Give the options that were not given what the site says. */
int topt_site_usual(const struct topt_site *site, struct topt_ask *ask,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* Where plugstack.conf names no url, toptd is looked for as all who ask it do (topt_place.h);
 * NOTFOUND where it is nowhere.  And who is believed to be toptd. */
int topt_site_find(struct topt_site *site, struct topt_error *err) TOPT_MUST_CHECK;

#endif
