/* options.c - one table of options per command. */
#include "topt_options.h"
#include "topt_query.h"
#include "topt_near.h"
#include "topt_text.h"

#include <stdlib.h>
#include <string.h>

static const char *dashes(const struct topt_option *o)
{
    return o->name[1] ? "--" : "-";
}

static const struct topt_option *lookup(const struct topt_option *table, const char *name,
                                        size_t len)
{
    for (; table->name; table++)
        if (table->kind != TOPT_OPT_EXAMPLE && strlen(table->name) == len &&
            !memcmp(table->name, name, len))
            return table;
    return NULL;
}

static int refuse_unknown(const struct topt_option *table, const char *given,
                          struct topt_error *err)
{
    char name[64];
    int len = (int)strcspn(given, "=");
    struct topt_near near = {.name = name};
    snprintf(name, sizeof name, "%.*s", len, given);
    near.name += strspn(name, "-");
    for (; table->name; table++)
        if (table->kind != TOPT_OPT_EXAMPLE)
            topt_near_try(&near, table->name);
    const char *meant = topt_near_name(&near);
    return topt_fail(err, TOPT_ERR_USAGE,
                     meant
                         ? "unknown option '%.*s'; did you mean --%s? (--help names all)"
                         : "unknown option '%.*s'; try --help",
                     len < 100 ? len : 100, given, meant);
}

static int is_switch(const struct topt_option *o)
{
    return o->kind == TOPT_OPT_FLAG || (o->kind == TOPT_OPT_FIELD && !*o->arg);
}

static int store(const struct topt_option *o, const char *value, void *target,
                 struct topt_error *err)
{
    void *field = (char *)target + o->offset;
    int rc = 0;
    switch (o->kind) {
    case TOPT_OPT_FLAG:
        *(int *)field = 1;
        break;
    case TOPT_OPT_STRING:
    case TOPT_OPT_MAYBE:
        *(const char **)field = value;
        break;
    case TOPT_OPT_INT:
    case TOPT_OPT_COUNT:
        rc = topt_parse_int(value, o->kind == TOPT_OPT_COUNT, INT64_MAX, field, err);
        break;
    case TOPT_OPT_REAL:
    case TOPT_OPT_POSITIVE:
        rc = topt_parse_real(value, o->kind == TOPT_OPT_POSITIVE, field, err);
        break;
    case TOPT_OPT_SHARE:
        rc = topt_parse_share(value, field, err);
        break;
    case TOPT_OPT_BYTES:
        rc = topt_parse_bytes(value, field, err);
        break;
    case TOPT_OPT_MEMORY:
        rc = topt_parse_memory(value, field, err);
        break;
    case TOPT_OPT_FIELD:
        rc = topt_query_option(field, o->name, value, err);
        break;
    case TOPT_OPT_EXAMPLE: /* lookup() finds none */
        break;
    }
    if (rc && o->kind != TOPT_OPT_FIELD) /* whose errors name it */
        topt_wrap(err, "%s%s", dashes(o), o->name);
    if (rc && err)
        err->code = TOPT_ERR_USAGE;
    return rc;
}

int topt_options_parse(const struct topt_option *table, int argc, char **argv,
                       void *target, const char **ret_args, int max_args, int *ret_nargs,
                       struct topt_error *err)
{
    int nargs = 0, only_args = 0;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (only_args || a[0] != '-' || a[1] == '\0') {
            if (nargs == max_args)
                return topt_fail(err, TOPT_ERR_USAGE,
                                 "unexpected argument '%s'; try --help", a);
            ret_args[nargs++] = a;
            continue;
        }
        if (!strcmp(a, "--")) {
            only_args = 1;
            continue;
        }
        if (!strcmp(a, "--help") || !strcmp(a, "-h"))
            return 1;
        const char *name = a + (a[1] == '-' ? 2 : 1);
        const char *eq = strchr(name, '=');
        size_t len = eq ? (size_t)(eq - name) : strlen(name);
        const struct topt_option *o = lookup(table, name, len);
        if (!o)
            return refuse_unknown(table, a, err);
        const char *value = eq ? eq + 1 : NULL;
        int is_flag = is_switch(o);
        if (is_flag && value)
            return topt_fail(err, TOPT_ERR_USAGE, "--%s takes no value", o->name);
        int none = i + 1 == argc || argv[i + 1][0] == '-';
        if (o->kind == TOPT_OPT_MAYBE && !value && none)
            value = "";
        if (!is_flag && !value) {
            if (i + 1 == argc)
                return topt_fail(err, TOPT_ERR_USAGE, "%s%s needs a value (%s)",
                                 dashes(o), o->name, o->arg);
            value = argv[++i];
        }
        if (store(o, is_flag ? "1" : value, target, err))
            return -1;
    }
    *ret_nargs = nargs;
    return 0;
}

enum { LEFT = 27, COLUMNS = 80 };

static void add_examples(struct topt_text *t, const struct topt_option *table)
{
    enum { INDENT = 8 };
    const char *title = "\nExamples:\n";
    for (; table->name; table++) {
        if (table->kind != TOPT_OPT_EXAMPLE)
            continue;
        topt_text_add(t, "%s    %s\n%*s", title, table->name, INDENT, "");
        topt_text_fold(t, table->help, strlen(table->help), INDENT, COLUMNS);
        topt_text_add(t, "\n");
        title = "";
    }
    if (!*title)
        topt_text_add(t, "\nOptions:\n");
}

void topt_options_help(FILE *out, const char *usage, const struct topt_option *table)
{
    struct topt_text t = {0};
    add_examples(&t, table);
    for (; table->name; table++) {
        if (table->kind == TOPT_OPT_EXAMPLE)
            continue;
        size_t begin = t.len;
        topt_text_add(&t, "  %s%s %s", dashes(table), table->name,
                      table->arg ? table->arg : "");
        if (t.len - begin < LEFT)
            topt_text_add(&t, "%*s", (int)(LEFT - (t.len - begin)), "");
        else
            topt_text_add(&t, "\n%*s", LEFT, "");
        topt_text_fold(&t, table->help, strlen(table->help), LEFT, COLUMNS);
        topt_text_add(&t, "\n");
    }
    fprintf(out, "Usage: %s\n%s", usage, t.s ? t.s : "");
    topt_text_fini(&t);
}
