/* hf_suggest.c - what a config of an unknown family may be: a slip of a known name, or
 * something that a known family reads as it is. */
#include "hf_suggest.h"
#include "hf_complete.h"
#include "hf_families.h"
#include "topt_near.h"

#include <stdio.h>
#include <string.h>

enum { SLIPS = 2 };

static void near_type(const char *type, char *ret, size_t size)
{
    struct topt_near near = {.name = type};
    for (const struct hf_family *f = topt_hf_families; f->model_type; f++)
        topt_near_try(&near, f->model_type);
    const char *close = near.distance <= SLIPS ? topt_near_name(&near) : NULL;
    snprintf(ret, size, "%s", close ? close : "");
}

/* Names of architectures share most of their letters, so that few slips are allowed. */
static void near_architecture(const char *name, char *ret, size_t size)
{
    int best = SLIPS + 1;
    for (const struct hf_family *f = topt_hf_families; f->model_type; f++)
        for (const struct hf_task *t = f->tasks; t->suffix; t++) {
            char full[120];
            struct topt_near near = {.name = name};
            snprintf(full, sizeof full, "%s%s", f->prefix, t->suffix);
            topt_near_try(&near, full);
            if (near.best && near.distance < best) {
                best = near.distance;
                snprintf(ret, size, "%s", full);
            }
        }
}

/* The family whose class knows the most of the config's keys, if those are nearly all;
 * the first of several. */
static const char *fitting(const json_t *doc)
{
    enum { NEARLY = 5 };
    json_t *keys = topt_hf_keys_of_classes(doc);
    int n = (int)json_array_size(keys), most = 0;
    const char *best = NULL;
    for (const struct hf_family *f = topt_hf_families; f->model_type; f++) {
        int known = f->like ? -1 : topt_hf_knows(keys, f->model_type);
        if (known > most) {
            most = known;
            best = f->model_type;
        }
    }
    json_decref(keys);
    return n > NEARLY && most >= n - n / NEARLY ? best : NULL;
}

void topt_hf_refuse_unknown(const json_t *doc, const char *type, const char *architecture,
                            struct topt_error *err)
{
    char slip[120] = "", suggestion[200] = "";
    int by_type = type || !architecture;
    const char *name = type ? type : architecture ? architecture : "null";
    if (by_type)
        near_type(name, slip, sizeof slip);
    else
        near_architecture(name, slip, sizeof slip);
    const char *like = fitting(doc);
    if (slip[0])
        snprintf(suggestion, sizeof suggestion, "; did you mean %s?", slip);
    else if (like)
        snprintf(suggestion, sizeof suggestion,
                 "; its keys are those of %s: if it is built alike, say --as %s", like,
                 like);
    topt_fail(err, TOPT_ERR_USAGE, "%s \"%.40s\" is not known%s",
              by_type ? "model_type" : "architecture", name, suggestion);
}
