/* hw_here.c - the profile of the GPUs that are at hand: what nvidia-smi and sinfo call a GPU, and the shipped profiles of it.
 *
 * A profile is taken where it is of the very GPU: of its model, form and memory, as nvidia-smi names them.  Slurm's types
 * of GPUs are words that an administrator chose: one is taken where it names a model of which one profile is shipped, or
 * says the memory, too.  Everything else is a suggestion.  The network of the profile is that of the machine that it was
 * made for, which nothing here can see. */
#include "hw_here.h"

#include <stdint.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_clock.h"
#include "topt_command.h"

enum { SMI_MS = 10000, SINFO_MS = 5000, NAME_MOST = 80 };

/* 'form' stands in nvidia-smi's name of the very GPU, beside the model; that of a card for a slot is one of its words. */
static const struct row {
    const char *model, *form, *profile;
    int64_t gb; /* of memory, as it is sold */
} rows[] = {
    {"a100", "sxm", "a100-80-dgx", 80},
    {"a100", "sxm", "a100-40-dgx", 40},
    {"a100", "pcie", "a100-80-pcie", 80},
    {"a100", "pcie", "a100-40-pcie", 40},
    {"h100", "hbm3", "h100-80-dgx", 80},
    {"h100", "pcie", "h100-80-pcie", 80},
    {"h100", "nvl", "h100-94-nvl", 94},
    {"h200", "h200", "h200-dgx", 141},
    {"h800", "h800", "h800-80-hgx", 80},
    {"h20", "h20", "h20-96-hgx", 96},
    {"b200", "b200", "b200-hgx", 180},
    {"b300", "b300", "b300-hgx", 275},
    {"gb200", "gb200", "gb200-nvl72", 186},
    {"gb300", "gb300", "gb300-nvl72", 284},
    {"v100", "sxm2", "v100-dgx1-2x8", 16},
    {"v100", "sxm2", "v100-32-dgx1", 32},
    {"v100", "sxm3", "v100-32-dgx2", 32},
    {"v100", "pcie", "v100-pcie-1x8", 16},
    {"v100", "pcie", "v100-32-pcie", 32},
    {"p100", "sxm2", "p100-4x4", 16},
    {"t4", "t4", "t4-g4dn", 16},
    {"l4", "l4", "l4-1x8", 24},
    {"l40s", "l40s", "l40s-1x8", 48},
    {"a10g", "a10g", "a10g-g5", 24},
    {"a6000", "a6000", "a6000-1x8", 48},
    {"6000 ada", "6000 ada", "rtx6000-ada-1x8", 48},
    {"4090", "rtx", "rtx4090-1x8", 24},
    {"5090", "rtx", "rtx5090-1x8", 32},
    {"titan xp", "titan", "titanxp-8x6", 12},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* GPUs of one kind, as a program calls them. */
struct seen {
    char name[NAME_MOST];
    int64_t count; /* of this machine, or of a node */
    int64_t mib;   /* of memory; 0: not said */
    int is_slurm;  /* of its nodes, not of this machine */
    int kinds;     /* of GPUs in all; only the first is described */
};

typedef int fits_row(const struct row *r, const struct seen *s);

static int goes_on(char a, char b)
{
    unsigned char x = (unsigned char)a, y = (unsigned char)b;
    return (isalpha(x) && isalpha(y)) || (isdigit(x) && isdigit(y));
}

/* Where the name has the row's model as a word of its own: an L40S is no L4, a GB200 no B200. */
static const char *model_at(const struct row *r, const struct seen *s)
{
    size_t n = strlen(r->model);
    for (const char *at = s->name; (at = strcasestr(at, r->model)); at++)
        if ((at == s->name || !goes_on(at[-1], *at)) && !goes_on(at[n - 1], at[n]))
            return at;
    return NULL;
}

static int has_model(const struct row *r, const struct seen *s)
{
    return model_at(r, s) != NULL;
}

/* Cards for a slot have no NVLink between all of a node, or another amount of it. */
static int is_card(const char *name)
{
    return strcasestr(name, "pcie") != NULL || strcasestr(name, "nvl") != NULL;
}

/* MiB that a driver shows are, in number, 1 to 3 % more than the GB that a GPU is sold with, times 1000. */
static int is_of(const struct row *r, const struct seen *s)
{
    return has_model(r, s) && strcasestr(s->name, r->form) &&
           is_card(s->name) == is_card(r->form) && s->mib > r->gb * 950 &&
           s->mib < r->gb * 1100;
}

/* A type of Slurm that names the row's model; with a memory in it, as a100_40gb, that of the row. */
static int is_named(const struct row *r, const struct seen *s)
{
    const char *at = model_at(r, s);
    if (!at || is_card(s->name) != is_card(r->form) ||
        (is_card(r->form) && !strcasestr(s->name, r->form)))
        return 0;
    at += strlen(r->model);
    while (*(at += strcspn(at, "0123456789"))) {
        char *end;
        int64_t n = strtoll(at, &end, 10);
        if (n >= 10 && n != r->gb)
            return 0;
        at = end;
    }
    return 1;
}

/* Append the profiles of the rows that fit, with "or" between; how many. */
static int list_fitting(const struct seen *s, fits_row *fits, struct topt_text *list,
                        const char **ret_last)
{
    int n = 0;
    for (int i = 0; i < ROWS; i++)
        if (fits(&rows[i], s)) {
            topt_text_add(list, n++ ? " or %s" : "%s", rows[i].profile);
            *ret_last = rows[i].profile;
        }
    return n;
}

/* A line of nvidia-smi is "NAME, MIB". */
static int look_here(struct seen *s)
{
    static const char *const args[] = {"nvidia-smi", "--query-gpu=name,memory.total",
                                       "--format=csv,noheader,nounits", NULL};
    struct topt_text out = {0};
    if (!topt_command_read(args, topt_clock_ms() + SMI_MS, &out, NULL) && out.s) {
        char *save = NULL;
        for (char *line = strtok_r(out.s, "\n", &save); line;
             line = strtok_r(NULL, "\n", &save)) {
            char *comma = strrchr(line, ',');
            int64_t mib = comma ? strtoll(comma + 1, NULL, 10) : 0;
            if (mib <= 0)
                continue;
            *comma = '\0';
            if (!s->kinds)
                snprintf(s->name, sizeof s->name, "%s", line);
            int is_other = strcmp(s->name, line) != 0;
            s->mib = s->kinds ? s->mib : mib;
            s->kinds += !s->kinds || is_other;
            s->count += !is_other;
        }
    }
    topt_text_fini(&out);
    return s->kinds;
}

/* "gpu:TYPE:N" of a list of generic resources; "gpu:N" says nothing of the GPU. */
static void read_gres(char *list, struct seen *s)
{
    char *save = NULL;
    for (char *item = strtok_r(list, ",", &save); item;
         item = strtok_r(NULL, ",", &save)) {
        char type[NAME_MOST] = "";
        if (strncmp(item, "gpu:", 4))
            continue;
        item += 4;
        char *colon = strpbrk(item, ":(");
        if (!colon || *colon != ':')
            continue;
        snprintf(type, sizeof type, "%.*s", (int)(colon - item), item);
        int is_new = !s->kinds || strcmp(s->name, type) != 0;
        s->kinds += is_new;
        if (s->kinds == 1 && is_new) {
            snprintf(s->name, sizeof s->name, "%s", type);
            s->count = strtoll(colon + 1, NULL, 10);
        }
    }
}

/* A line of sinfo for each kind of nodes, of a partition. */
static int look_at_slurm(struct seen *s)
{
    static const char *const args[] = {"sinfo", "-h", "-e", "-o", "%G", NULL};
    struct topt_text out = {0};
    if (!topt_command_read(args, topt_clock_ms() + SINFO_MS, &out, NULL) && out.s) {
        char *save = NULL;
        for (char *line = strtok_r(out.s, "\n", &save); line;
             line = strtok_r(NULL, "\n", &save))
            read_gres(line, s);
        s->is_slurm = 1;
    }
    topt_text_fini(&out);
    return s->kinds;
}

static void describe(const struct seen *s, struct topt_text *t)
{
    if (s->is_slurm)
        topt_text_add(t, "sinfo shows nodes with %lld GPUs of type %s",
                      (long long)s->count, s->name);
    else
        topt_text_add(t, "nvidia-smi shows %lld %s (%lld MiB) here", (long long)s->count,
                      s->name, (long long)s->mib);
    if (s->kinds > 1)
        topt_text_add(t, ", and GPUs of other kinds");
}

int topt_hw_here(const char **ret, struct topt_text *said, struct topt_error *err)
{
    struct seen s = {0};
    struct topt_text list = {0};
    const char *profile = NULL;
    *ret = NULL;
    int is_here = look_here(&s);
    if (!is_here && !look_at_slurm(&s))
        return 0;
    describe(&s, said);
    int n = list_fitting(&s, is_here ? is_of : is_named, &list, &profile);
    if (n == 1 && s.kinds == 1)
        *ret = profile;
    else if (n || list_fitting(&s, has_model, &list, &profile))
        topt_fail(err, TOPT_ERR_USAGE, "--hw is needed: %s; %s --hw %s",
                  said->s ? said->s : "", n ? "give" : "the nearest that is shipped is",
                  list.s ? list.s : "");
    else
        topt_fail(
            err, TOPT_ERR_USAGE,
            "--hw is needed: %s, of which no profile is shipped; `topt hw list` names "
            "all, and --hw takes a file of your own",
            said->s ? said->s : "");
    topt_text_fini(&list);
    return *ret ? 0 : -1;
}
