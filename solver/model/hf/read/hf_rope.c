/* hf_rope.c - rotary angles of Hugging Face configs.
 *
 * A config has a base, and may say how angles are scaled so that a model reaches
 * beyond the positions that it was first trained on.  The row of the operator takes a
 * base, a factor for slow angles and where slow ends and fast begins, which is what
 * linear, Llama 3's and YaRN's scaling come to.  "dynamic" scales nothing up to the
 * config's context, above which no model is made.  "longrope" divides each angle by a
 * number of its own: where all are the same that is linear, else it is told of and not
 * run. */
#include "hf_rope.h"
#include "hf_read.h"
#include "topt_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where a scaling stands, and what it may ask of the config around it. */
struct scaling {
    const json_t *doc, *rope;
    const char *place;
};

double topt_hf_yarn_scale(double factor, double m)
{
    return factor > 1 ? 0.1 * m * log(factor) + 1 : 1;
}

static int read_factor(const struct scaling *s, struct topt_attrs *r,
                       struct topt_error *err)
{
    if (topt_json_real_or(s->rope, s->place, "factor", 1, 1e6, &r->rope_factor, err))
        return -1;
    return r->rope_factor > 0
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "%s.factor is missing", s->place);
}

/* Positions that the model was first trained on, said here or in the config itself. */
static int read_original(const struct scaling *s, int64_t usual, int64_t *ret,
                         struct topt_error *err)
{
    static const char key[] = "original_max_position_embeddings";
    *ret = usual;
    return topt_json_int_or(s->doc, "", key, 1, HF_MAX_CONTEXT, ret, err) ||
                   topt_json_int_or(s->rope, s->place, key, 1, HF_MAX_CONTEXT, ret, err)
               ? -1
               : 0;
}

static int read_none(const struct scaling *s, struct hf_arch *a, struct topt_error *err)
{
    (void)s, (void)a, (void)err;
    return 0;
}

static int read_linear(const struct scaling *s, struct hf_arch *a, struct topt_error *err)
{
    return read_factor(s, &a->rope, err);
}

static int read_llama3(const struct scaling *s, struct hf_arch *a, struct topt_error *err)
{
    struct topt_attrs *r = &a->rope;
    return read_factor(s, r, err) ||
                   read_original(s, a->context, &r->rope_context, err) ||
                   topt_json_real(s->rope, s->place, "low_freq_factor", 1e-6, 1e6,
                                  &r->rope_slow, err) ||
                   topt_json_real(s->rope, s->place, "high_freq_factor", 1e-6, 1e6,
                                  &r->rope_fast, err)
               ? -1
               : 0;
}

static int read_yarn(const struct scaling *s, struct hf_arch *a, struct topt_error *err)
{
    struct topt_attrs *r = &a->rope;
    double m = 0, m_all = 0;
    int whole = 1;
    r->rope_slow = 1;
    r->rope_fast = 32;
    r->rope_by_pair = 1;
    if (read_factor(s, r, err) || read_original(s, a->context, &r->rope_context, err) ||
        topt_json_real_or(s->rope, s->place, "beta_slow", 1e-6, 1e6, &r->rope_slow,
                          err) ||
        topt_json_real_or(s->rope, s->place, "beta_fast", 1e-6, 1e6, &r->rope_fast,
                          err) ||
        topt_json_real_or(s->rope, s->place, "mscale", 0, 1e6, &m, err) ||
        topt_json_real_or(s->rope, s->place, "mscale_all_dim", 0, 1e6, &m_all, err) ||
        topt_json_bool_or(s->rope, s->place, "truncate", &whole, err))
        return -1;
    if (!whole)
        a->not_run = "angles that YaRN scales between parts of pairs";
    r->scale = m > 0 && m_all > 0 ? topt_hf_yarn_scale(r->rope_factor, m) /
                                        topt_hf_yarn_scale(r->rope_factor, m_all)
                                  : topt_hf_yarn_scale(r->rope_factor, 1);
    return topt_json_real_or(s->rope, s->place, "attention_factor", 1e-6, 1e6, &r->scale,
                             err);
}

/* The number that all of a list are; -1: they differ; 0 with an error: it is no such
 * list. */
static double same_number(const struct scaling *s, const char *key, int64_t n,
                          struct topt_error *err)
{
    const json_t *list = topt_json_member(s->rope, key);
    double first = 0;
    if (!json_is_array(list) || json_array_size(list) != (size_t)n) {
        topt_fail(err, TOPT_ERR_INVAL, "%s.%s must have a number for each of %lld angles",
                  s->place, key, (long long)n);
        return 0;
    }
    for (size_t i = 0; i < (size_t)n; i++) {
        double x = json_number_value(json_array_get(list, i));
        if (!(x >= 1e-6 && x <= 1e6)) {
            topt_fail(err, TOPT_ERR_INVAL, "%s.%s[%zu] must be a number above 0",
                      s->place, key, i);
            return 0;
        }
        if (i == 0)
            first = x;
        else if (x < first || x > first)
            first = -1;
    }
    return first;
}

/* Short factors up to the original context, long ones above; what is turned is scaled
 * by how much longer the new one is, in both. */
static int read_longrope(const struct scaling *s, struct hf_arch *a,
                         struct topt_error *err)
{
    int64_t original, angles = a->rope.rope_dim / 2;
    double factor = 1;
    if (read_original(s, a->context, &original, err))
        return -1;
    double brief = same_number(s, "short_factor", angles, err);
    double wide = brief < 0 || brief > 0 ? same_number(s, "long_factor", angles, err) : 0;
    if (!(wide < 0 || wide > 0))
        return -1;
    factor = (double)a->context / (double)original;
    if (original == a->context &&
        topt_json_real_or(s->rope, s->place, "factor", 1, 1e6, &factor, err))
        return -1;
    if (factor > 1)
        a->rope.scale = sqrt(1 + log(factor) / log((double)original));
    a->inexact_why = "the rotary angles of longrope, each scaled by a number of its own";
    a->inexact_above = brief > 0 ? original : 0;
    if (brief < 1 || brief > 1)
        a->rope.rope_factor = brief > 0 ? brief : 0;
    return topt_json_real_or(s->rope, s->place, "attention_factor", 1e-6, 1e6,
                             &a->rope.scale, err);
}

/* A share of a head is turned, by the first of the angles that the whole head would
 * have: those of a base that is less by as much. */
static int read_proportional(const struct scaling *s, struct hf_arch *a,
                             struct topt_error *err)
{
    int64_t head = a->full_head_dim ? a->full_head_dim : a->head_dim;
    double share = 1;
    if (topt_json_real_or(s->rope, s->place, "partial_rotary_factor", 0, 1, &share,
                          err) ||
        topt_json_real_or(s->rope, s->place, "factor", 1, 1e6, &a->rope.rope_factor, err))
        return -1;
    a->rope.rope_dim = (int64_t)((double)head * share) / 2 * 2;
    a->rope.rope_theta = pow(a->rope.rope_theta, (double)a->rope.rope_dim / (double)head);
    return 0;
}

static const struct {
    const char *type;
    int (*read)(const struct scaling *s, struct hf_arch *a, struct topt_error *err);
} kinds[] = {{"default", read_none},
             {"mrope", read_none}, /* of a text's positions all sections are the same */
             {"dynamic", read_none},
             {"linear", read_linear},
             {"llama3", read_llama3},
             {"yarn", read_yarn},
             {"longrope", read_longrope},
             {"su", read_longrope},
             {"proportional", read_proportional},
             {NULL, NULL}};

static int read_scaling(const struct scaling *s, struct hf_arch *a,
                        struct topt_error *err)
{
    const char *type = "default";
    if (!json_is_object(s->rope))
        return topt_fail(err, TOPT_ERR_INVAL, "%s must be an object", s->place);
    if (topt_json_string_or(s->rope, s->place, "type", &type, err) ||
        topt_json_string_or(s->rope, s->place, "rope_type", &type, err) ||
        topt_json_real_or(s->rope, s->place, "rope_theta", 1, 1e15, &a->rope.rope_theta,
                          err))
        return -1;
    for (int i = 0; kinds[i].type; i++)
        if (!strcmp(kinds[i].type, type))
            return kinds[i].read(s, a, err);
    return topt_fail(
        err, TOPT_ERR_INVAL,
        "%s has type \"%.40s\", which is not read; read are default, dynamic, linear, "
        "llama3, yarn, longrope, proportional and mrope",
        s->place, type);
}

/* "rope_parameters" may have the angles of full and of local layers apart. */
static int read_place(const json_t *doc, const char *place, struct hf_arch *a,
                      struct topt_error *err)
{
    const json_t *rope = topt_json_member(doc, place);
    const json_t *full = topt_json_member(rope, "full_attention");
    const json_t *local = topt_json_member(rope, "sliding_attention");
    if (!rope || json_is_null(rope))
        return 0;
    if (local) {
        struct hf_arch *async = calloc(1, sizeof *async);
        if (!async)
            return topt_nomem(err, "a config");
        *async = *a;
        async->rope = a->local_rope;
        async->rope.rope_dim = a->head_dim;
        int rc = read_scaling(&(struct scaling){doc, local, place}, async, err);
        a->local_rope = async->rope;
        free(async);
        if (rc)
            return -1;
    }
    return read_scaling(&(struct scaling){doc, full ? full : rope, place}, a, err);
}

/* Numbers of a head that are turned: said already, or a share of them. */
static int read_turned(const json_t *doc, const char *key, double share,
                       struct hf_arch *a, struct topt_error *err)
{
    const json_t *rope = topt_json_member(doc, "rope_parameters");
    if (topt_json_real_or(doc, "", key, 0, 1, &share, err) ||
        (json_is_object(rope) &&
         topt_json_real_or(rope, "rope_parameters", "partial_rotary_factor", 0, 1, &share,
                           err)))
        return -1;
    if (!a->rope.rope_dim)
        a->rope.rope_dim = (int64_t)((double)a->head_dim * share);
    return a->rope.rope_dim % 2 == 0
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "%lld numbers of a head are rotated, an odd number",
                           (long long)a->rope.rope_dim);
}

int topt_hf_rope(const json_t *doc, const char *key, double share, struct hf_arch *a,
                 struct topt_error *err)
{
    static const char *const places[] = {"rope_scaling", "rope_parameters", NULL};
    if (!(a->rope.rope_theta > 0))
        a->rope.rope_theta = 10000;
    if (read_turned(doc, key, share, a, err) ||
        topt_json_real_or(doc, "", "rope_theta", 1, 1e15, &a->rope.rope_theta, err))
        return -1;
    for (int p = 0; places[p]; p++)
        if (read_place(doc, places[p], a, err))
            return -1;
    return 0;
}
