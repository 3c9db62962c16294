/* adapters.c - what an adapter_config.json of PEFT asks of a model.
 *
 * Modules are named by a list of the last parts of their names, or by a regular expression
 * that a whole name must match.  An expression comes to a list where it takes all modules of
 * a name or none, as it does in practice; any other is refused. */
#include "adapters.h"
#include "topt_json.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LEAVES = 64, LEAF = 80, PATTERN = 1000 };

/* Modules that have the same last part of their names. */
struct leaf {
    char name[LEAF];
    int taken, left;
};

struct leaves {
    const struct topt_model *base;
    regex_t regex;
    struct leaf leaf[MAX_LEAVES];
    int n;
};

/* Python's groups that capture nothing, and its lazy repeats, are no others to a whole match;
 * -1 where it has what POSIX does not. */
static int to_posix(const char *python, char ret[PATTERN + 8])
{
    size_t n = 0;
    ret[n++] = '^';
    ret[n++] = '(';
    for (const char *c = python; *c && n < PATTERN; c++) {
        if (c[0] == '(' && c[1] == '?') {
            if (c[2] != ':')
                return -1;
            ret[n++] = '(';
            c += 2;
        } else if (c[0] == '\\' && c[1] == 'd') {
            n += (size_t)snprintf(ret + n, 6, "[0-9]");
            c++;
        } else if (c[0] == '\\' && strchr("wWsSDbB", c[1])) {
            return -1;
        } else if (c[0] == '?' && c > python && strchr("*+?", c[-1])) {
            continue;
        } else {
            ret[n++] = *c;
            if (*c == '\\' && c[1])
                ret[n++] = *++c;
        }
    }
    memcpy(ret + n, ")$", 3);
    return n < PATTERN ? 0 : -1;
}

static int note_weight(void *ctx, const struct topt_weight *w)
{
    static const char end[] = ".weight";
    struct leaves *l = ctx;
    char module[400];
    size_t n = strlen(w->name), k = sizeof end - 1;
    if (n <= k || n - k >= sizeof module || strcmp(w->name + n - k, end) ||
        strcmp(l->base->op[w->op].spec->name, "linear") != 0)
        return 0;
    snprintf(module, sizeof module, "%.*s", (int)(n - k), w->name);
    const char *dot = strrchr(module, '.'), *last = dot ? dot + 1 : module;
    int i = 0;
    while (i < l->n && strcmp(l->leaf[i].name, last) != 0)
        i++;
    if (i == MAX_LEAVES || strlen(last) >= LEAF)
        return 0;
    if (i == l->n)
        snprintf(l->leaf[l->n++].name, LEAF, "%s", last);
    if (regexec(&l->regex, module, 0, NULL, 0))
        l->leaf[i].left++;
    else
        l->leaf[i].taken++;
    return 0;
}

static int names_of_regex(const char *python, const struct topt_model *base, char *ret,
                          size_t size, struct topt_error *err)
{
    struct leaves l = {.base = base};
    char posix[PATTERN + 8];
    size_t n = 0;
    if (to_posix(python, posix) || regcomp(&l.regex, posix, REG_EXTENDED | REG_NOSUB))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "target_modules is \"%.100s\", a pattern that is not read: say "
                         "the modules, as in --train lora:16:q_proj,v_proj",
                         python);
    int rc = topt_model_weights(base, note_weight, &l);
    regfree(&l.regex);
    ret[0] = '\0';
    for (int i = 0; !rc && i < l.n; i++) {
        if (l.leaf[i].taken && l.leaf[i].left)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "target_modules is \"%.100s\", which takes %d of %d modules "
                             "%.60s: adapters of some layers alone are not read",
                             python, l.leaf[i].taken, l.leaf[i].taken + l.leaf[i].left,
                             l.leaf[i].name);
        if (l.leaf[i].taken && n + LEAF + 2 < size)
            n += (size_t)snprintf(ret + n, size - n, "%s%s", n ? "," : ":",
                                  l.leaf[i].name);
    }
    return n ? 0
             : topt_fail(err, TOPT_ERR_INVAL,
                         "target_modules is \"%.100s\", which no linear map of the model "
                         "is named: say the modules, as in --train lora:16:q_proj,v_proj",
                         python);
}

static int names_of_list(const json_t *list, char *ret, size_t size,
                         struct topt_error *err)
{
    size_t n = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name || n + strlen(name) + 2 >= size)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "target_modules must be a list of names, or a pattern");
        n += (size_t)snprintf(ret + n, size - n, "%s%s", n ? "," : ":", name);
    }
    return 0;
}

/* Parameters that no words of --train have. */
static int refuse_more(const json_t *config, struct topt_error *err)
{
    static const struct {
        const char *key, *why;
    } more[] = {{"modules_to_save", "modules that are trained whole beside adapters"},
                {"rank_pattern", "ranks that differ by module"},
                {"layers_to_transform", "adapters of some layers alone"},
                {"target_parameters", "adapters of parameters that are no modules"},
                {"exclude_modules", "modules that are left out by name"},
                {NULL, NULL}};
    for (int i = 0; more[i].key; i++) {
        const json_t *value = json_object_get(config, more[i].key);
        if (json_is_integer(value) || json_is_string(value) || json_array_size(value) ||
            json_object_size(value))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s is set: %s are not read; --train lora:R:NAMES plans "
                             "adapters without them",
                             more[i].key, more[i].why);
    }
    return 0;
}

static const char *small_parts(const json_t *config)
{
    const char *bias = topt_json_words_at(config, "bias");
    if (json_is_true(json_object_get(config, "use_dora")))
        return "DoRA's magnitudes, a number for each row that has an adapter, are left "
               "out";
    if (json_number_value(json_object_get(config, "lora_dropout")) > 0)
        return "of lora_dropout the mask and the copy that each adapter keeps are "
               "counted, nothing else";
    return *bias && strcmp(bias, "none") != 0
               ? "biases that are trained beside adapters are taken to be frozen"
               : NULL;
}

int topt_adapters_spec(const json_t *config, const struct topt_model *base, char *ret,
                       size_t size, const char **ret_note, struct topt_error *err)
{
    char names[600] = "";
    const json_t *targets = json_object_get(config, "target_modules");
    const char *word = json_string_value(targets);
    int64_t rank = 16;
    if (topt_json_int_or(config, "", "r", 1, 1 << 16, &rank, err) ||
        refuse_more(config, err))
        return -1;
    if (word && strcmp(word, "all-linear") != 0
            ? names_of_regex(word, base, names, sizeof names, err)
            : names_of_list(targets, names, sizeof names, err))
        return -1;
    snprintf(ret, size, "lora:%lld%s", (long long)rank, names);
    *ret_note = small_parts(config);
    return 0;
}
