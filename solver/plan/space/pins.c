/* pins.c - splits that the user has chosen: read, found in a model, held against
 * configurations. */
#include "pins.h"
#include "topt_near.h"
#include "topt_text.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------------- */

/* A part of a text, from 'at' to before 'end'. */
struct span {
    const char *at, *end;
};

static struct span trimmed(struct span s)
{
    while (s.at < s.end && isspace((unsigned char)*s.at))
        s.at++;
    while (s.end > s.at && isspace((unsigned char)s.end[-1]))
        s.end--;
    return s;
}

/* Cut off the part of 's' up to 'c', and 'c' itself. */
static struct span next(struct span *s, char c)
{
    const char *at = s->at;
    while (at < s->end && *at != c)
        at++;
    struct span part = {s->at, at};
    s->at = at < s->end ? at + 1 : at;
    return trimmed(part);
}

static size_t length(struct span s)
{
    return (size_t)(s.end - s.at);
}

static int is_word(struct span s, const char *word)
{
    return length(s) == strlen(word) && !memcmp(s.at, word, length(s));
}

static int copy(struct span s, char *to, size_t size)
{
    if (!length(s) || length(s) >= size)
        return -1;
    memcpy(to, s.at, length(s));
    to[length(s)] = 0;
    return 0;
}

static int64_t number(struct span s)
{
    int64_t n = 0;
    for (const char *c = s.at; c < s.end; c++) {
        if (!isdigit((unsigned char)*c) || n > 1 << 20)
            return 0;
        n = 10 * n + (*c - '0');
    }
    return n;
}

static int bad_split(struct span s, struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_USAGE,
                     "a pin's split is parts of dimensions, as b:2,n:4, or axes, as "
                     "b:n0+g0, or what topt explain prints, as data 2 x tensor 4 over n; "
                     "not '%.*s'",
                     (int)(length(s) < 60 ? length(s) : 60), s.at);
}

/* "n0+g1" */
static int read_axes(struct topt_pin_part *p, struct span s)
{
    while (s.at < s.end) {
        struct span axis = next(&s, '+');
        uint32_t *mask = axis.at < axis.end && *axis.at == 'n' ? &p->nodes : &p->inside;
        struct span digits = {axis.at + 1, axis.end};
        int64_t at = length(axis) > 1 ? number(digits) : TOPT_MAX_AXES;
        if ((*axis.at != 'n' && *axis.at != 'g') || at >= TOPT_MAX_AXES ||
            (!at && !is_word(digits, "0")))
            return -1;
        *mask |= 1u << at;
    }
    return p->nodes || p->inside ? 0 : -1;
}

static int read_parts(struct topt_pin *p, struct span s, struct topt_error *err)
{
    struct span all = s;
    while (s.at < s.end) {
        struct span part = next(&s, ','), dim = next(&part, ':');
        struct topt_pin_part *to = &p->part[p->n];
        if (p->n == TOPT_MAX_OPDIMS || copy(dim, to->dim, TOPT_PIN_DIM))
            return bad_split(all, err);
        to->parts = number(trimmed(part));
        if (to->parts < 1 && read_axes(to, trimmed(part)))
            return bad_split(all, err);
        p->n++;
    }
    return 0;
}

/* "data 2" */
static int read_way(struct topt_pin *p, struct span s)
{
    struct {
        const char *name;
        int64_t *parts;
    } way[] = {{"data", &p->data},         {"spatial", &p->spatial},
               {"sequence", &p->sequence}, {"tensor", &p->tensor},
               {"expert", &p->expert},     {"same", &p->same}};
    struct span word = next(&s, ' ');
    for (size_t i = 0; i < sizeof way / sizeof *way; i++)
        if (is_word(word, way[i].name)) {
            *way[i].parts = number(trimmed(s));
            return *way[i].parts >= 1 ? 0 : -1;
        }
    return -1;
}

/* Takes what follows a word off the end; 1 where it is there. */
static int tail(struct span *s, const char *word, struct span *ret)
{
    size_t n = strlen(word);
    for (const char *at = s->at; at + n <= s->end; at++)
        if (!memcmp(at, word, n)) {
            *ret = trimmed((struct span){at + n, s->end});
            s->end = at;
            *s = trimmed(*s);
            return 1;
        }
    return 0;
}

static int read_ways(struct topt_pin *p, struct span s, struct topt_error *err)
{
    static const char *const zero[] = {
        "no sharding", "ZeRO-1", "ZeRO-2", "FSDP", "sparse gradients", "owners of rows"};
    struct span all = s, over, with;
    p->ways = 1;
    p->data = p->spatial = p->sequence = p->tensor = p->expert = p->same = 1;
    if (tail(&s, " over ", &over))
        while (over.at < over.end) {
            struct span dim = next(&over, ',');
            if (p->n == TOPT_MAX_OPDIMS || copy(dim, p->part[p->n].dim, TOPT_PIN_DIM))
                return bad_split(all, err);
            p->n++;
        }
    if (tail(&s, " with ", &with)) {
        for (int z = 0; z < TOPT_ZERO_COUNT && p->zero < 0; z++)
            if (is_word(with, zero[z]))
                p->zero = z;
        if (p->zero < 0)
            return bad_split(all, err);
    }
    if (is_word(s, "one device"))
        return 0;
    while (s.at < s.end) {
        struct span part = s, rest;
        if (tail(&part, " x ", &rest))
            s = rest;
        else
            s.at = s.end;
        if (read_way(p, part))
            return bad_split(all, err);
    }
    return 0;
}

static int read_pin(struct topt_pin *p, struct span s, struct topt_error *err)
{
    struct span name = s, split;
    const char *at = s.end;
    while (at > s.at && *at != '=')
        at--;
    name.end = at;
    split = trimmed((struct span){at < s.end ? at + 1 : at, s.end});
    *p = (struct topt_pin){.zero = -1};
    if (at == s.at || !length(split) || copy(trimmed(name), p->name, sizeof p->name))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "a pin is NAME=SPLIT, as 'h0.up=n:8'; several with ';' between; "
                         "not '%.*s'",
                         (int)(length(s) < 60 ? length(s) : 60), s.at);
    return memchr(split.at, ':', length(split)) ? read_parts(p, split, err)
                                                : read_ways(p, split, err);
}

int topt_pins_parse(const char *text, struct topt_pins *ret, struct topt_error *err)
{
    struct span s = {text, text + strlen(text)};
    int most = 1;
    for (const char *c = text; *c; c++)
        most += *c == ';';
    *ret = (struct topt_pins){.pin = calloc((size_t)most, sizeof *ret->pin)};
    if (!ret->pin)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for pins");
    while (s.at < s.end) {
        struct span one = next(&s, ';');
        if (length(one) && read_pin(&ret->pin[ret->n++], one, err)) {
            topt_pins_fini(ret);
            return -1;
        }
    }
    return 0;
}

void topt_pins_fini(struct topt_pins *p)
{
    free(p->pin);
    free(p->at);
    free(p->alike);
    *p = (struct topt_pins){0};
}

/* ---- of a model -------------------------------------------------------------------- */

static int dim_of(const struct topt_op *op, const char *name)
{
    for (int d = 0; d < op->spec->ndims; d++)
        if (!strcmp(op->spec->dim[d].name, name))
            return d;
    return -1;
}

static int check_dims(const struct topt_pin *p, const struct topt_op *op,
                      struct topt_error *err)
{
    struct topt_text all = {0};
    int i = 0;
    while (i < p->n && dim_of(op, p->part[i].dim) >= 0)
        i++;
    if (i == p->n)
        return 0;
    for (int d = 0; d < op->spec->ndims; d++)
        topt_text_add(&all, "%s%s", d ? ", " : "", op->spec->dim[d].name);
    topt_fail(err, TOPT_ERR_USAGE,
              "--pin %s: '%s', a %s, has no dimension '%s' (it has %s)", p->name,
              op->name, op->spec->name, p->part[i].dim, all.s ? all.s : "");
    topt_text_fini(&all);
    return -1;
}

/* An operator's name after the last dot, so that blocks do not repeat it. */
static const char *own_name(const struct topt_op *op)
{
    const char *dot = strrchr(op->name, '.');
    return dot ? dot + 1 : op->name;
}

static void put_names(struct topt_text *t, const struct topt_model *m)
{
    enum { SHOWN = 14 };
    int n = 0;
    for (int i = 0; i < m->nops && n <= SHOWN; i++) {
        const char *name = own_name(&m->op[i]);
        int k = 0;
        while (strcmp(own_name(&m->op[k]), name))
            k++;
        if (k == i) {
            topt_text_add(t, "%s%s", n ? ", " : "", n < SHOWN ? name : "...");
            n++;
        }
    }
}

static int no_such(const struct topt_pin *p, const struct topt_model *m,
                   struct topt_error *err)
{
    struct topt_near near = {.name = p->name};
    struct topt_text all = {0};
    char meant[TOPT_NEAR_WORDS];
    for (int i = 0; i < m->nops; i++)
        topt_near_try(&near, m->op[i].name);
    put_names(&all, m);
    if (*topt_near_words(&near, meant))
        topt_fail(err, TOPT_ERR_USAGE, "--pin: %s has no operator '%s'%s", m->name,
                  p->name, meant);
    else
        topt_fail(err, TOPT_ERR_USAGE,
                  "--pin: %s has no operator '%s'; it has %s, in blocks with a prefix as "
                  "%s",
                  m->name, p->name, all.s ? all.s : "", m->op[m->nops / 2].name);
    topt_text_fini(&all);
    return -1;
}

static int find_ops(struct topt_pins *p, const struct topt_model *m,
                    struct topt_error *err)
{
    for (int k = 0; k < p->n; k++) {
        int any = 0;
        for (int i = 0; i < m->nops; i++) {
            const char *name = m->op[i].name;
            if (strcmp(p->pin[k].name, name) != 0 &&
                fnmatch(p->pin[k].name, name, 0) != 0)
                continue;
            if (check_dims(&p->pin[k], &m->op[i], err))
                return -1;
            p->at[i] = k;
            any = 1;
        }
        if (!any)
            return no_such(&p->pin[k], m, err);
    }
    return 0;
}

/* The last pin of all operators at one place of a kind's blocks is that of all. */
static void share(struct topt_pins *p, const struct topt_model *m)
{
    const struct topt_blocks *b = m->blocks;
    for (int i = 0; i < m->nops; i++) {
        const struct topt_block_kind *k = b->kind[i] >= 0 ? &b->of[b->kind[i]] : NULL;
        p->alike[i] = p->at[i];
        for (int x = 0; k && x < k->count; x++) {
            int other = p->at[k->first + x * k->length + b->position[i]];
            p->alike[i] = other > p->alike[i] ? other : p->alike[i];
        }
    }
}

int topt_pins_init(struct topt_pins *p, const char *text, const struct topt_model *m,
                   struct topt_error *err)
{
    *p = (struct topt_pins){0};
    if (!text)
        return 0;
    if (topt_pins_parse(text, p, err))
        return -1;
    p->at = malloc(((size_t)m->nops + 1) * sizeof *p->at);
    p->alike = malloc(((size_t)m->nops + 1) * sizeof *p->alike);
    int rc = p->at && p->alike ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for pins");
    for (int i = 0; i < m->nops && !rc; i++)
        p->at[i] = -1;
    if (rc || find_ops(p, m, err)) {
        topt_pins_fini(p);
        return -1;
    }
    share(p, m);
    return 0;
}

/* ---- configurations ---------------------------------------------------------------- */

void topt_pin_parts(const struct topt_op *op, const struct topt_mesh *mesh,
                    const struct topt_config *c, int64_t parts[TOPT_MAX_OPDIMS],
                    int64_t *same)
{
    *same = 1;
    for (int d = 0; d < op->spec->ndims; d++)
        parts[d] = 1;
    for (int a = 0; a < mesh->naxes; a++)
        *(c->dim[a] >= 0 ? &parts[(int)c->dim[a]] : same) *= mesh->size[a];
}

static int named(const struct topt_pin *p, const char *dim)
{
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->part[i].dim, dim))
            return i;
    return -1;
}

/* Do these axes, and no others, split a dimension? */
static int same_axes(const struct topt_pin_part *p, const struct topt_mesh *mesh,
                     const struct topt_config *c, int dim)
{
    struct topt_pin_part has = {.parts = 0};
    for (int a = 0; a < mesh->naxes; a++)
        if (c->dim[a] == dim && a < mesh->node_axes)
            has.nodes |= 1u << a;
        else if (c->dim[a] == dim)
            has.inside |= 1u << (a - mesh->node_axes);
    return has.nodes == p->nodes && has.inside == p->inside;
}

static int same_parts(const struct topt_pin *p, const struct topt_op *op,
                      const struct topt_mesh *mesh, const struct topt_config *c,
                      const int64_t parts[])
{
    for (int d = 0; d < op->spec->ndims; d++) {
        int i = named(p, op->spec->dim[d].name);
        if (i >= 0 && !p->part[i].parts ? !same_axes(&p->part[i], mesh, c, d)
                                        : parts[d] != (i >= 0 ? p->part[i].parts : 1))
            return 0;
    }
    return 1;
}

static int same_ways(const struct topt_pin *p, const struct topt_op *op,
                     const int64_t parts[], int64_t same)
{
    int64_t data = 1, spatial = 1, sequence = 1, tensor = 1, expert = 1;
    int e = topt_op_experts(op);
    for (int d = 0; d < op->spec->ndims; d++) {
        enum topt_split s = op->spec->dim[d].split;
        *(s == TOPT_SPLIT_BATCH      ? &data
          : s == TOPT_SPLIT_SPATIAL  ? &spatial
          : s == TOPT_SPLIT_SEQUENCE ? &sequence
          : d == e                   ? &expert
                                     : &tensor) *= parts[d];
        if (p->n && s != TOPT_SPLIT_BATCH && d != e &&
            (parts[d] > 1) != (named(p, op->spec->dim[d].name) >= 0))
            return 0;
    }
    return data == p->data && spatial == p->spatial && sequence == p->sequence &&
           tensor == p->tensor && expert == p->expert && same == p->same;
}

int topt_pin_matches(const struct topt_pin *p, const struct topt_op *op,
                     const struct topt_mesh *mesh, const struct topt_config *c)
{
    int64_t parts[TOPT_MAX_OPDIMS], same;
    topt_pin_parts(op, mesh, c, parts, &same);
    return p->ways ? same_ways(p, op, parts, same) : same_parts(p, op, mesh, c, parts);
}

int topt_pins_at(const struct topt_pins *p, int alike, int op)
{
    return p && p->at && op >= 0 ? (alike ? p->alike : p->at)[op] : -1;
}

int topt_pins_allow(const struct topt_pins *p, int alike, int op,
                    const struct topt_op *of, const struct topt_mesh *mesh,
                    const struct topt_config *c)
{
    int k = topt_pins_at(p, alike, op);
    return k < 0 || ((p->pin[k].zero < 0 || p->pin[k].zero == c->zero) &&
                     topt_pin_matches(&p->pin[k], of, mesh, c));
}
