/* document.c - a program of the build: what documents say of a question's fields, from their table.
 *
 *     toptd-document openapi TEMPLATE OUT  the description of the API, into a file
 *     toptd-document rest                  docs/REST.md's table of fields
 *     toptd-document slurm                 docs/SLURM.md's table of options
 *     toptd-document client                the options of docs/man/topt-client.1
 *     toptd-document sbatch                the options of docs/man/spank_topt.8
 *
 * The template describes every route there is or is to be; the description holds those of
 * route_table.h, each with what may be answered to any request.  In it {"$fields": "plan"}
 * stands for what that endpoint takes: in a list for parameters of a URL, but those that
 * the list names itself, and as a member of an object for members of a body.
 *
 * Prints to standard output; status 1 with a line on standard error where the template
 * can't be read, or lacks a route. */
#include <jansson.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "route_table.h"
#include "topt_fields.h"

enum door { REST, TOPT, SBATCH, TOPTD };

struct field {
    const char *name;
    enum topt_field_kind kind;
    int64_t least, most;
    int where;
    enum door doors;
    const char *option, *arg, *other, *values, *help;
};

static const struct field fields[] = {
#define X(ID, name, KIND, LEAST, MOST, WHERE, KEY, DOORS, OPTION, ARG, OTHER, VALUES,    \
          HELP)                                                                          \
    {#name, TOPT_FIELD_##KIND, LEAST, MOST, WHERE, DOORS, OPTION, ARG, OTHER, VALUES,    \
     HELP},
    TOPT_FIELDS(X)
#undef X
};
enum { NFIELDS = sizeof fields / sizeof *fields };

/* What goes with a question of a job in Slurm. */
enum about_kind { ABOUT_TEXT, ABOUT_INT, ABOUT_WORD };
static const struct about {
    const char *name;
    enum about_kind kind;
    int64_t most;
    const char *option, *values, *help;
} abouts[] = {
#define X(name, KIND, MOST, OPTION, VALUES, HELP)                                        \
    {"slurm_" #name, ABOUT_##KIND, MOST, OPTION, VALUES, HELP},
    TOPT_SLURM_FIELDS(X)
#undef X
};
enum { NABOUTS = sizeof abouts / sizeof *abouts };

static const struct {
    const char *method, *path, *least; /* least: of roles */
} routes[] = {
#define X(METHOD, path, handler, least) {#METHOD, path, #least},
    TOPTD_ROUTES(X)
#undef X
};
enum { NROUTES = sizeof routes / sizeof *routes };

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fputs("toptd-document: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

static json_t *need(json_t *value)
{
    if (!value)
        fail("out of memory");
    return value;
}

/* ---- the description of the API ---------------------------------------------------------- */

static json_t *words_of(const char *values)
{
    json_t *list = need(json_array());
    for (const char *s = values; *s; s += *s == ',') {
        size_t n = strcspn(s, ",");
        json_array_append_new(list, need(json_stringn(s, n)));
        s += n;
    }
    return list;
}

static json_t *text_schema(const struct field *f)
{
    static const char name[] = "^[A-Za-z0-9_][A-Za-z0-9._-]*$";
    static const char list[] = "^ *[a-z0-9_-]+ *(, *[a-z0-9_-]+ *)*$";
    if (f->kind == TOPT_FIELD_WORD && f->values)
        return json_pack("{s:s, s:o}", "type", "string", "enum", words_of(f->values));
    json_t *s = need(json_pack("{s:s, s:I}", "type", "string", "maxLength", f->most));
    if (f->kind == TOPT_FIELD_LIST) {
        json_object_set_new(s, "pattern", json_string(list));
        json_object_set_new(s, "x-words", words_of(f->values));
    } else if (f->kind != TOPT_FIELD_LABEL) {
        json_object_set_new(s, "minLength", json_integer(1));
        json_object_set_new(s, "pattern", json_string(name));
    }
    return s;
}

static json_t *number_schema(const struct field *f, const char *type)
{
    return json_pack("{s:s, s:I, s:I}", "type", type, "minimum", f->least, "maximum",
                     f->most);
}

/* A number, or text with a unit. */
static json_t *size_schema(const struct field *f, int64_t least)
{
    return json_pack("{s:[{s:s, s:I, s:I}, {s:s, s:s}]}", "anyOf", "type", "integer",
                     "minimum", least, "maximum", f->most, "type", "string", "pattern",
                     "^ *[0-9.]+ *[A-Za-z]* *$");
}

/* topt_parse_share(): a share, a percentage, either as text. */
static json_t *share_schema(void)
{
    return json_pack("{s:[{s:s, s:i, s:i}, {s:s, s:i, s:i}, {s:s, s:s}]}", "anyOf",
                     "type", "number", "minimum", 0, "maximum", 1, "type", "number",
                     "minimum", 5, "maximum", 100, "type", "string", "pattern",
                     "^ *[0-9.]+ *%? *$");
}

/* topt_parse_amount(): a whole number, or as text with its unit. */
static json_t *amount_schema(const struct field *f)
{
    return json_pack("{s:[{s:s, s:I, s:I}, {s:s, s:s}]}", "anyOf", "type", "integer",
                     "minimum", (json_int_t)f->least, "maximum", (json_int_t)f->most,
                     "type", "string", "pattern",
                     "^ *[0-9.]+([eE][+]?[0-9]+)? *[KMBTkmbt]? *$");
}

static json_t *list_schema(const struct field *f)
{
    return json_pack("{s:s, s:o, s:i, s:i, s:b}", "type", "array", "items",
                     need(number_schema(f, "integer")), "minItems", 1, "maxItems",
                     TOPT_FIELD_COUNTS_MOST, "uniqueItems", 1);
}

static json_t *schema_of(const struct field *f, int in_url)
{
    switch (f->kind) {
    case TOPT_FIELD_WORD:
    case TOPT_FIELD_NAME:
    case TOPT_FIELD_LIST:
    case TOPT_FIELD_LABEL:
        return text_schema(f);
    case TOPT_FIELD_INT:
    case TOPT_FIELD_BATCH:
        return number_schema(f, "integer");
    case TOPT_FIELD_BYTES:
        return size_schema(f, f->least);
    case TOPT_FIELD_MEMORY:
        return size_schema(f, 1 << 20);
    case TOPT_FIELD_AMOUNT:
        return amount_schema(f);
    case TOPT_FIELD_REAL:
    case TOPT_FIELD_PRICE:
        return number_schema(f, "number");
    case TOPT_FIELD_SHARE:
        return share_schema();
    case TOPT_FIELD_BOOL:
        return json_pack("{s:s}", "type", "boolean");
    case TOPT_FIELD_COUNTS:
        if (in_url)
            return list_schema(f);
        return json_pack("{s:[o, o]}", "oneOf", need(number_schema(f, "integer")),
                         need(list_schema(f)));
    }
    return NULL;
}

static json_t *description_of(const struct field *f)
{
    return need(json_sprintf("%s (default: %s)", f->help, f->other));
}

static json_t *parameter_of(const struct field *f)
{
    json_t *p = need(json_pack("{s:s, s:s, s:o, s:o}", "name", f->name, "in", "query",
                               "description", description_of(f), "schema",
                               need(schema_of(f, 1))));
    if (f->kind == TOPT_FIELD_COUNTS) {
        json_object_set_new(p, "style", json_string("form"));
        json_object_set_new(p, "explode", json_false());
    }
    return p;
}

static json_t *about_parameter(const struct about *a)
{
    json_t *schema =
        a->kind == ABOUT_INT ? json_pack("{s:s, s:i, s:I}", "type", "integer", "minimum",
                                         0, "maximum", a->most)
        : a->kind == ABOUT_TEXT
            ? json_pack("{s:s, s:I}", "type", "string", "maxLength", a->most)
            : json_pack("{s:s, s:o}", "type", "string", "enum", words_of(a->values));
    return need(json_pack("{s:s, s:s, s:o, s:o}", "name", a->name, "in", "query",
                          "description", json_sprintf("of a job in Slurm: %s", a->help),
                          "schema", need(schema)));
}

static int endpoint(const char *name)
{
    static const char *const names[] = {"plan", "curve", "frontier"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, names[i]))
            return 1 << i;
    fail("$fields of '%s', which is no endpoint with a question", name);
}

static int lists(const json_t *parameters, const char *name)
{
    size_t i;
    json_t *p;
    json_array_foreach(parameters, i, p)
    {
        const char *its = json_string_value(json_object_get(p, "name"));
        if (its && !strcmp(its, name))
            return 1;
    }
    return 0;
}

/* The list with references to what the endpoint takes in place of its "$fields". */
static json_t *with_parameters(const json_t *list)
{
    json_t *out = need(json_array()), *p;
    size_t i;
    json_array_foreach(list, i, p)
    {
        const char *name = json_string_value(json_object_get(p, "$fields"));
        if (!name)
            json_array_append(out, p);
        for (int k = 0; name && k < NFIELDS; k++)
            if (fields[k].where & endpoint(name) && !lists(list, fields[k].name))
                json_array_append_new(
                    out, need(json_pack("{s:o}", "$ref",
                                        json_sprintf("#/components/parameters/%s",
                                                     fields[k].name))));
        for (int k = 0; name && endpoint(name) == TOPT_IN_PLAN && k < NABOUTS; k++)
            json_array_append_new(
                out, need(json_pack(
                         "{s:o}", "$ref",
                         json_sprintf("#/components/parameters/%s", abouts[k].name))));
    }
    return out;
}

static void put_members(json_t *object, const char *name)
{
    int where = endpoint(name);
    json_object_del(object, "$fields");
    for (int k = 0; k < NFIELDS; k++) {
        if (!(fields[k].where & where))
            continue;
        json_t *schema = need(schema_of(&fields[k], 0));
        json_object_set_new(schema, "description", description_of(&fields[k]));
        json_object_set_new(object, fields[k].name, schema);
    }
}

static void expand(json_t *v)
{
    const char *key;
    json_t *member;
    size_t i;
    void *tmp;
    const char *name = json_string_value(json_object_get(v, "$fields"));
    if (name)
        put_members(v, name);
    json_object_foreach_safe(v, tmp, key, member)
    {
        if (!strcmp(key, "parameters") && json_is_array(member))
            json_object_set_new(v, key, with_parameters(member));
        else
            expand(member);
    }
    json_array_foreach(v, i, member) expand(member);
}

/* The row of a route; -1 where it is not served. */
static int route_of(const char *path, const char *method)
{
    for (int i = 0; i < NROUTES; i++)
        if (!strcmp(routes[i].path, path) && !strcasecmp(routes[i].method, method))
            return i;
    return -1;
}

/* What may be answered to any request, and who may ask. */
static void complete(json_t *operation, const char *least)
{
    static const struct {
        const char *status, *name;
    } any[] = {{"400", "Malformed"},  {"401", "Unauthorized"},    {"403", "Forbidden"},
               {"413", "TooLarge"},   {"415", "UnsupportedType"}, {"429", "TooMany"},
               {"503", "Unavailable"}};
    json_t *responses = json_object_get(operation, "responses");
    int open = !strcmp(least, "NOBODY");
    for (size_t i = 0; i < sizeof any / sizeof *any; i++)
        if (!json_object_get(responses, any[i].status) && !(open && i == 1))
            json_object_set_new(
                responses, any[i].status,
                need(json_pack("{s:o}", "$ref",
                               json_sprintf("#/components/responses/%s", any[i].name))));
    char role[16] = "";
    for (size_t i = 0; least[i] && i + 1 < sizeof role; i++)
        role[i] = (char)(least[i] | 0x20);
    json_object_set_new(operation, "x-least-role", need(json_string(role)));
}

/* Of the template's routes those that are served; all that are. */
static void keep_served(json_t *paths)
{
    const char *path, *method;
    json_t *methods, *operation;
    void *tmp, *tmp2;
    int kept = 0;
    json_object_foreach_safe(paths, tmp, path, methods)
    {
        json_object_foreach_safe(methods, tmp2, method, operation)
        {
            int i = route_of(path, method);
            if (i < 0) {
                json_object_del(methods, method);
                continue;
            }
            complete(operation, routes[i].least);
            kept++;
        }
        if (!json_object_size(methods))
            json_object_del(paths, path);
    }
    if (kept != NROUTES)
        fail("the template describes %d of the %d routes in route_table.h", kept,
             NROUTES);
}

/* Components that something left refers to. */
static void keep_used(json_t *doc)
{
    const char *kind, *name;
    json_t *group, *part;
    void *tmp;
    int dropped = 1;
    while (dropped) {
        char *text = json_dumps(doc, JSON_COMPACT);
        dropped = 0;
        json_object_foreach(json_object_get(doc, "components"), kind, group)
        {
            json_object_foreach_safe(group, tmp, name, part)
            {
                char ref[120];
                snprintf(ref, sizeof ref, "\"#/components/%s/%s\"", kind, name);
                if (!text || strstr(text, ref))
                    continue;
                json_object_del(group, name);
                dropped = 1;
            }
        }
        free(text);
    }
}

static void write_openapi(const char *path, const char *to)
{
    json_error_t e;
    json_t *doc = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
    if (!doc)
        fail("%s:%d: %s", path, e.line, e.text);
    json_t *components = json_object_get(doc, "components");
    json_t *parameters = json_object_get(components, "parameters"); /* of no field */
    parameters = parameters ? json_incref(parameters) : need(json_object());
    for (int i = 0; i < NFIELDS; i++)
        json_object_set_new(parameters, fields[i].name, parameter_of(&fields[i]));
    for (int i = 0; i < NABOUTS; i++)
        json_object_set_new(parameters, abouts[i].name, about_parameter(&abouts[i]));
    keep_served(json_object_get(doc, "paths"));
    expand(doc);
    json_object_set_new(components, "parameters", parameters);
    keep_used(doc);
    if (json_dump_file(doc, to, JSON_INDENT(1)))
        fail("can't write %s", to);
    json_decref(doc);
}

/* ---- a table ----------------------------------------------------------------------------- */

static void print_words(const char *values)
{
    for (const char *s = values; *s; s += *s == ',') {
        int n = (int)strcspn(s, ",");
        printf("%s`%.*s`", s == values ? "" : ", ", n, s);
        s += n;
    }
}

static void print_kind(const struct field *f)
{
    switch (f->kind) {
    case TOPT_FIELD_LIST:
        printf("with commas between ");
        print_words(f->values);
        break;
    case TOPT_FIELD_WORD:
    case TOPT_FIELD_NAME:
        if (f->values)
            print_words(f->values);
        else
            printf("a name");
        break;
    case TOPT_FIELD_LABEL:
        printf("text of at most %lld bytes", (long long)f->most);
        break;
    case TOPT_FIELD_INT:
    case TOPT_FIELD_BATCH:
    case TOPT_FIELD_REAL:
    case TOPT_FIELD_PRICE:
        printf("%lld to %lld", (long long)f->least, (long long)f->most);
        break;
    case TOPT_FIELD_SHARE:
        printf("0 to 1, or 5 to 100 as a percentage, or `\"80%%\"`");
        break;
    case TOPT_FIELD_COUNTS:
        printf("%lld to %lld; a list `[1,2,4]`, in a query `1,2,4`", (long long)f->least,
               (long long)f->most);
        break;
    case TOPT_FIELD_BYTES:
        printf("bytes, or `2GiB`");
        break;
    case TOPT_FIELD_MEMORY:
        printf("`14.5GiB`; `80` is refused: was `80GiB` meant?");
        break;
    case TOPT_FIELD_AMOUNT:
        printf("a whole number, or `300B`, `1.5T`, `2e12`");
        break;
    case TOPT_FIELD_BOOL:
        printf("`true`, `false`");
        break;
    }
}

static void print_rest(void)
{
    static const char *const of[8] = {[TOPT_IN_PLAN] = "plan",
                                      [TOPT_IN_PLAN | TOPT_IN_CURVE] = "plan, curve",
                                      [TOPT_IN_PLAN | TOPT_IN_FRONTIER] =
                                          "plan, frontier",
                                      [TOPT_IN_ANY] = "all"};
    puts("| field | of | value | what it is | where it is not said "
         "|\n|---|---|---|---|---|");
    for (int i = 0; i < NFIELDS; i++) {
        const struct field *f = &fields[i];
        printf("| `%s` | %s | ", f->name, of[f->where]);
        print_kind(f);
        printf(" | %s | %s |\n", f->help, f->other);
    }
}

/* What goes with a question of a job. */
static void print_abouts(void)
{
    puts("\nWith a question of a job in Slurm, in its URL:\n\n"
         "| parameter | option | value | what it is |\n|---|---|---|---|");
    for (int i = 0; i < NABOUTS; i++) {
        const struct about *a = &abouts[i];
        printf("| `%s` | %s%s%s | ", a->name, a->option ? "`--" : "",
               a->option ? a->option : "", a->option ? "`" : "");
        if (a->kind == ABOUT_INT)
            printf("0 to %lld", (long long)a->most);
        else if (a->kind == ABOUT_TEXT)
            printf("text of at most %lld bytes", (long long)a->most);
        else
            print_words(a->values);
        printf(" | %s |\n", a->help);
    }
}

static void print_slurm(void)
{
    puts("| option | | default |\n"
         "|---|---|---|");
    for (int i = 0; i < NFIELDS; i++)
        if (fields[i].doors >= SBATCH)
            printf("| `--topt-%s%s%s` | %s | %s |\n", fields[i].option,
                   *fields[i].arg ? "=" : "", fields[i].arg, fields[i].help,
                   fields[i].other);
}

/* ---- manual pages ------------------------------------------------------------------------ */

static void print_roff(const char *s)
{
    for (; *s; s++)
        printf(*s == '-' ? "\\-" : *s == '\\' ? "\\e" : "%c", *s);
}

/* As "HELP (default: OTHER).", a sentence. */
static void print_sentence(const struct field *f)
{
    char first[2] = {*f->help, '\0'};
    int word = f->help[strcspn(f->help, " ") - 1] == ':'; /* a value, as it is written */
    if (*first >= 'a' && *first <= 'z' && !word)
        *first = (char)(*first - 'a' + 'A');
    print_roff(first);
    print_roff(f->help + 1);
    printf(" (default: ");
    print_roff(f->other);
    puts(").");
}

/* 'prefix' before the option, 'joint' between it and its argument. */
static void print_options(enum door door, const char *prefix, const char *joint)
{
    for (int i = 0; i < NFIELDS; i++) {
        const struct field *f = &fields[i];
        if (f->doors < door)
            continue;
        printf(".TP\n%s \\-\\-%s", *f->arg ? ".BI" : ".B", prefix);
        print_roff(f->option);
        if (*f->arg)
            printf(*joint == '=' ? "= %s" : " \" %s\"", f->arg);
        puts("");
        print_sentence(f);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "openapi") && argc == 4)
        write_openapi(argv[2], argv[3]);
    else if (!strcmp(what, "rest"))
        print_rest(), print_abouts();
    else if (!strcmp(what, "slurm"))
        print_slurm();
    else if (!strcmp(what, "client"))
        print_options(TOPT, "", " ");
    else if (!strcmp(what, "sbatch"))
        print_options(SBATCH, "topt\\-", "=");
    else
        fail("usage: toptd-document openapi TEMPLATE OUT|rest|slurm|client|sbatch");
    return 0;
}
