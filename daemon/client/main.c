/* main.c - topt-client: `topt client ...`, the questions of `topt` put to a running toptd.
 *
 * Options of a question are passed on as they are written, and the server checks them: so
 * the client knows their names only.  A search that takes longer is polled, by long requests,
 * until --timeout. */
#include "hint.h"
#include "request.h"
#include "topt_show_plan.h"
#include "topt_fields.h"
#include "topt_json.h"
#include "topt_label.h"
#include "topt_near.h"
#include "topt_options.h"
#include "topt_place.h"
#include "topt_plan.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 64 << 20, WAIT_MS = 20000, MARGIN_S = 15 };

/* What makes a question: the rows of the table of fields that are options here. */
#define TYPE_TEXT        const char *
#define TYPE_FLAG        int
#define KIND_TEXT        TOPT_OPT_STRING
#define KIND_FLAG        TOPT_OPT_FLAG
#define SAID_TEXT(value) (value)
#define SAID_FLAG(value) ((value) ? "1" : NULL)
#define AS_WORD          TEXT
#define AS_NAME          TEXT
#define AS_LIST          TEXT
#define AS_LABEL         TEXT
#define AS_INT           TEXT
#define AS_BATCH         TEXT
#define AS_BYTES         TEXT
#define AS_MEMORY        TEXT
#define AS_REAL          TEXT
#define AS_COUNTS        TEXT
#define AS_BOOL          FLAG
#define JOIN(a, b)       JOIN_(a, b)
#define JOIN_(a, b)      a##b

struct args {
#define X(ID, name, KIND, LEAST, MOST, WHERE, KEY, INTO, DOORS, ...)                     \
    TOPT_FIELD_OF_TOPT_##DOORS(JOIN(TYPE_, AS_##KIND) name;)
    TOPT_FIELDS(X)
#undef X
    int json;
    const char *url, *output, *svg, *daemon_uid;
    int64_t timeout;
};

static const struct topt_option table[] = {
#define X(ID, name, KIND, LEAST, MOST, WHERE, KEY, INTO, DOORS, OPTION, ARG, OTHER,      \
          VALUES, HELP)                                                                  \
    TOPT_FIELD_OF_TOPT_##DOORS({OPTION, JOIN(KIND_, AS_##KIND),                          \
                                offsetof(struct args, name), ARG,                        \
                                HELP "; else " OTHER}, )
    TOPT_FIELDS(X)
#undef X
        {"o", TOPT_OPT_STRING, offsetof(struct args, output), "FILE",
         "write there (- is stdout)"},
    {"svg", TOPT_OPT_STRING, offsetof(struct args, svg), "FILE",
     "of a curve: draw it there"},
    {"json", TOPT_OPT_FLAG, offsetof(struct args, json), "",
     "the server's answer as it is"},
    {"url", TOPT_OPT_STRING, offsetof(struct args, url), "URL",
     "unix:/PATH or http://HOST:PORT (default: $TOPT_URL, else where toptd listens)"},
    {"daemon-uid", TOPT_OPT_STRING, offsetof(struct args, daemon_uid), "USER",
     "who runs toptd (default: $TOPT_DAEMON_UID, else root or the user topt)"},
    {"timeout", TOPT_OPT_COUNT, offsetof(struct args, timeout), "SECONDS",
     "longest wait for a search (900)"},
    {0}};

struct client {
    const char *sub; /* for messages */
    struct args args;
    const char *arg; /* the positional one, or NULL */
    char path[4096]; /* of the file that it names */
    int no_file;     /* it is none, and was taken for a model that the server has */
    struct topt_trust trust;
    int64_t began_ms;
    int status; /* exit status where a function returned -1 and printed */
};

/* ---- failing ----------------------------------------------------------------------------- */

static int complain(struct client *c, const struct topt_error *err)
{
    fprintf(stderr, "topt client %s: %s\n", c->sub, err->text);
    c->status = topt_err_exit(err->code);
    return -1;
}

/* An option's value that can't be, or a name in it that the server does not know. */
static int was_asked_wrongly(const char *error, const char *source)
{
    static const char *const fields[] = {
#define X(ID, name, ...) #name,
        TOPT_FIELDS(X)
#undef X
            NULL};
    if (error && !strcmp(error, topt_err_name(TOPT_ERR_USAGE)))
        return 1;
    for (int i = 0; source && fields[i]; i++)
        if (!strcmp(source, fields[i]))
            return 1;
    return 0;
}

/* The server's refusal as one line. */
static int refused(struct client *c, const struct client_reply *r)
{
    json_t *doc = json_loads(r->body.s ? r->body.s : "", 0, NULL);
    const json_t *e = json_array_get(json_object_get(doc, "errors"), 0);
    const char *text = json_string_value(json_object_get(e, "description"));
    const char *source = json_string_value(json_object_get(e, "source"));
    json_t *nearest = json_object_get(e, "nearest");
    char *near = nearest ? json_dumps(nearest, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    fprintf(stderr, "topt client %s: %s%s%s%s%s%s%s\n", c->sub,
            c->no_file && source && !strcmp(source, "model_id") ? "no such file, and "
                                                                : "",
            text ? text : "the server refused without saying why", source ? " (" : "",
            source ? source : "", source ? ")" : "", near ? "; nearest: " : "",
            near ? near : "");
    if (!text)
        fprintf(stderr, "topt client %s: HTTP status %ld\n", c->sub, r->status);
    const char *name = json_string_value(json_object_get(e, "error"));
    int wrongly =
        (r->status == 400 || r->status == 404) && was_asked_wrongly(name, source);
    c->status = topt_err_exit(name && !strcmp(name, "infeasible") ? TOPT_ERR_INFEASIBLE
                              : wrongly                           ? TOPT_ERR_USAGE
                                                                  : TOPT_ERR_INVAL);
    free(near);
    json_decref(doc);
    return -1;
}

/* ---- asking ------------------------------------------------------------------------------ */

static int ask(struct client *c, const char *method, const char *path, const char *body,
               size_t len, const char *type, struct client_reply *ret)
{
    struct topt_error err = {0};
    const struct client_request q = {.url = c->args.url,
                                     .method = method,
                                     .path = path,
                                     .body = body,
                                     .body_len = len,
                                     .type = type,
                                     .trust = &c->trust,
                                     .timeout_s = WAIT_MS / 1000 + MARGIN_S,
                                     .began_ms = c->began_ms};
    return client_ask(&q, ret, &err) < 0 ? complain(c, &err) : 0;
}

static void give_up(struct client *c, const char *task)
{
    struct client_reply r;
    struct topt_error err;
    topt_fail(&err, TOPT_ERR_CANCELED,
              "the search took longer than %lld s; raise --timeout",
              (long long)c->args.timeout);
    if (ask(c, "DELETE", task, NULL, 0, NULL, &r) == 0)
        client_reply_fini(&r);
    complain(c, &err);
}

/* Milliseconds that the next request may wait: what is left of --timeout, in parts. */
static int wait_of(const struct client *c)
{
    int64_t left = c->args.timeout * 1000 - (client_now_ms() - c->began_ms);
    return left > WAIT_MS ? WAIT_MS : left > 0 ? (int)left : 0;
}

/* The document of a task that has ended becomes the reply that it holds: 1, or 0 where it has not. */
static int unwrap(struct client_reply *r)
{
    json_t *doc = json_loads(r->body.s ? r->body.s : "", 0, NULL);
    const json_t *result = json_object_get(doc, "result");
    int has_ended = result != NULL;
    if (has_ended) {
        topt_text_fini(&r->body);
        char *text = json_dumps(result, JSON_COMPACT);
        topt_text_add(&r->body, "%s", text ? text : "");
        r->status = (long)json_integer_value(json_object_get(doc, "status"));
        free(text);
    }
    json_decref(doc);
    return has_ended;
}

/* Follow a task until it ends.  'r' goes from the 202 to what the question is answered. */
static int follow(struct client *c, struct client_reply *r)
{
    char task[128], path[192];
    snprintf(task, sizeof task, "%s", r->location);
    do {
        int wait = wait_of(c);
        snprintf(path, sizeof path, "%s?wait_ms=%d", task, wait);
        client_reply_fini(r);
        if (!wait) {
            give_up(c, task);
            return -1;
        }
        if (ask(c, "GET", path, NULL, 0, NULL, r) < 0)
            return -1;
    } while (r->status == 200 && !unwrap(r));
    return 0;
}

/* Ask and want 2xx; the body is in '*ret'. */
static int ask_ok(struct client *c, const char *method, const char *path,
                  const char *body, size_t len, const char *type,
                  struct client_reply *ret)
{
    if (ask(c, method, path, body, len, type, ret) < 0)
        return -1;
    if (ret->status == 202 && follow(c, ret) < 0)
        return -1;
    if (ret->status / 100 == 2)
        return 0;
    refused(c, ret);
    client_reply_fini(ret);
    return -1;
}

static json_t *ask_json(struct client *c, const char *method, const char *path,
                        const char *body, size_t len, const char *type)
{
    struct client_reply r;
    struct topt_error err = {0};
    if (ask_ok(c, method, path, body, len, type, &r) < 0)
        return NULL;
    json_t *doc =
        topt_json_parse(r.body.s ? r.body.s : "", r.body.len, "the answer", &err);
    if (!doc)
        complain(c, &err);
    client_reply_fini(&r);
    return doc;
}

/* ---- showing ----------------------------------------------------------------------------- */

static const char *words(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "?";
}

static int print_json(const json_t *doc)
{
    char *text = topt_json_text(doc, 2);
    puts(text ? text : "null");
    free(text);
    return 0;
}

/* The same as `topt plan`, and what to ask next. */
static int show_plan(const struct client *c, const json_t *a)
{
    char *hint = hint_line(a, "--min-efficiency ");
    topt_show_plan(a, c->args.output);
    if (hint)
        printf("or        %s\n", hint);
    printf("slurm     %s\n", words(json_object_get(a, "slurm"), "flags"));
    free(hint);
    return 0;
}

static int terminal_width(void)
{
    struct winsize w;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40)
        return w.ws_col;
    return 90;
}

static int show_curve(const json_t *curve)
{
    char *text = topt_plot_curve(curve, terminal_width());
    if (!text)
        return -1;
    fputs(text, stdout);
    free(text);
    return 0;
}

/* A curve on the terminal or as JSON, and into the file that --svg names. */
static int put_curve(struct client *c, const json_t *curve)
{
    struct topt_error err = {0};
    char *svg = c->args.svg ? topt_svg_curve(curve) : NULL;
    int rc = !c->args.svg ? 0
             : svg        ? topt_write_file(c->args.svg, svg, strlen(svg), &err)
                          : topt_fail(&err, TOPT_ERR_NOMEM, "no memory for the picture");
    free(svg);
    if (rc)
        return complain(c, &err);
    return c->args.json ? print_json(curve) : show_curve(curve);
}

/* ---- subcommands ------------------------------------------------------------------------- */

static void add_question(const struct client *c, struct topt_text *path)
{
    const struct args *a = &c->args;
    const char *value;
#define X(ID, name, KIND, LEAST, MOST, WHERE, KEY, INTO, DOORS, ...)                     \
    TOPT_FIELD_OF_TOPT_##DOORS(if ((value = JOIN(SAID_, AS_##KIND)(a->name)))            \
                                   client_add_query(path, #name, value);)
    TOPT_FIELDS(X)
#undef X
    char wait[16];
    snprintf(wait, sizeof wait, "%d", wait_of(c));
    client_add_query(path, "wait_ms", wait);
}

/* The bytes of the file that c->arg names; its path goes to c->path. */
static char *read_input(struct client *c, size_t *ret_len)
{
    struct stat st;
    struct topt_error err = {0};
    const char *arg = c->arg + (*c->arg == '@'); /* as in arguments of Megatron-LM */
    int is_dir = !stat(arg, &st) && S_ISDIR(st.st_mode);
    int len = (int)strlen(arg);
    while (is_dir && len > 1 && arg[len - 1] == '/')
        len--;
    snprintf(c->path, sizeof c->path, "%.*s%s", len, arg, is_dir ? "/config.json" : "");
    char *text = topt_read_file(c->path, MAX_FILE, ret_len, &err);
    if (!text)
        complain(c, &err);
    return text;
}

/* The question about the model in the file c->arg, put to /v1/plan. */
static json_t *ask_about_file(struct client *c)
{
    size_t len;
    char *text = read_input(c, &len);
    struct topt_text path = {0};
    if (!text)
        return NULL;
    char name[TOPT_LABEL];
    topt_label(c->path, name);
    topt_text_add(&path, "/v1/plan");
    add_question(c, &path);
    client_add_query(&path, "name", name);
    json_t *answer = ask_json(c, "POST", path.s, text, len, "application/octet-stream");
    topt_text_fini(&path);
    free(text);
    return answer;
}

/* The id or name of what c->arg means where it means a model that the server has:
 * "model:NAME", or no path and no file.  Else NULL. */
static const char *registered(const struct client *c)
{
    static const char prefix[] = "model:";
    const char *s = c->arg, *dot = strrchr(s, '.');
    if (!strncmp(s, prefix, sizeof prefix - 1))
        return s + sizeof prefix - 1;
    int path = *s == '@' || strchr(s, '/') || !strcmp(s, "-") ||
               (dot && (!strcmp(dot, ".json") || !strcmp(dot, ".onnx")));
    return path || !access(s, F_OK) ? NULL : s;
}

/* The question about c->arg, a file or a model that the server has. */
static json_t *ask_about_model(struct client *c)
{
    const char *key = registered(c);
    struct topt_text path = {0};
    if (!key)
        return ask_about_file(c);
    c->no_file = key == c->arg;
    topt_text_add(&path, "/v1/plan");
    client_add_query(&path, "model_id", key);
    add_question(c, &path);
    json_t *answer = ask_json(c, "POST", path.s, "", 0, "application/octet-stream");
    topt_text_fini(&path);
    return answer;
}

static int save_plan(struct client *c, const json_t *answer)
{
    struct topt_error err = {0};
    const json_t *plan = json_object_get(answer, "plan");
    char *text = plan ? topt_json_text(plan, 2) : NULL;
    int rc = text ? topt_write_file(c->args.output, text, strlen(text), &err)
                  : topt_fail(&err, TOPT_ERR_INVAL, "the answer holds no plan");
    free(text);
    return rc < 0 ? complain(c, &err) : 0;
}

static int run_plan(struct client *c)
{
    json_t *answer = ask_about_model(c);
    if (!answer)
        return -1;
    int rc = c->args.output ? save_plan(c, answer) : 0;
    if (rc == 0)
        rc = json_object_get(answer, "points") ? put_curve(c, answer)
             : c->args.json                    ? print_json(answer)
                                               : show_plan(c, answer);
    json_decref(answer);
    return rc;
}

static int run_curve(struct client *c)
{
    c->args.mode = "profiling";
    json_t *curve = ask_about_model(c);
    if (!curve)
        return -1;
    int rc = put_curve(c, curve);
    json_decref(curve);
    return rc;
}

static int run_get_plan(struct client *c)
{
    struct client_reply r;
    struct topt_error err = {0};
    char path[200];
    snprintf(path, sizeof path, "/v1/plans/%.100s", c->arg);
    if (ask_ok(c, "GET", path, NULL, 0, NULL, &r) < 0)
        return -1;
    int rc = topt_write_file(c->args.output ? c->args.output : "-", r.body.s, r.body.len,
                             &err);
    client_reply_fini(&r);
    return rc < 0 ? complain(c, &err) : 0;
}

/* Send the file to 'to'; with the name that it gives a model. */
static int run_add(struct client *c, const char *to, int named)
{
    size_t len;
    struct topt_text path = {0};
    char *text = read_input(c, &len);
    if (!text)
        return -1;
    char name[TOPT_LABEL];
    topt_label(c->path, name);
    topt_text_add(&path, "%s", to);
    if (named)
        client_add_query(&path, "name", name);
    json_t *answer = ask_json(c, "POST", path.s, text, len, "application/json");
    topt_text_fini(&path);
    free(text);
    if (!answer)
        return -1;
    if (c->args.json)
        print_json(answer);
    else
        printf("%s  %s\n", words(answer, "id"), words(answer, "name"));
    json_decref(answer);
    return 0;
}

static int run_add_model(struct client *c)
{
    return run_add(c, "/v1/models", 1);
}

static int run_add_hw(struct client *c)
{
    return run_add(c, "/v1/hardware", 0);
}

static int run_list(struct client *c, const char *path, const char *key)
{
    json_t *answer = ask_json(c, "GET", path, NULL, 0, NULL);
    if (!answer)
        return -1;
    if (c->args.json)
        print_json(answer);
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(answer, key), i, row)
    {
        const char *id = json_string_value(json_object_get(row, "id"));
        if (!c->args.json)
            printf("%-36s %s\n", id ? id : "shipped", words(row, "name"));
    }
    json_decref(answer);
    return 0;
}

static int run_models(struct client *c)
{
    return run_list(c, "/v1/models", "models");
}

static int run_hardware(struct client *c)
{
    return run_list(c, "/v1/hardware", "hardware");
}

static int run_status(struct client *c)
{
    struct client_reply r;
    if (ask_ok(c, "GET", "/readyz", NULL, 0, NULL, &r) < 0)
        return -1;
    client_reply_fini(&r);
    printf("%s is ready\n", c->args.url);
    if (ask(c, "GET", "/metrics", NULL, 0, NULL, &r) < 0)
        return -1;
    if (r.status / 100 != 2) { /* they are for operators */
        client_reply_fini(&r);
        return 0;
    }
    for (char *next = r.body.s, *line; (line = strsep(&next, "\n"));)
        if (*line && *line != '#')
            printf("  %s\n", line);
    client_reply_fini(&r);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(struct client *c);
    const char *arg, *help; /* arg NULL: takes none */
} subcommands[] = {
    {"plan", run_plan, "MODEL", "the fewest GPUs that fit, or the fastest strategy"},
    {"curve", run_curve, "MODEL", "time against GPUs, drawn"},
    {"get-plan", run_get_plan, "PLAN-ID", "a plan given out before (-o FILE)"},
    {"models", run_models, NULL, "models the server knows"},
    {"hardware", run_hardware, NULL, "hardware profiles the server knows"},
    {"add-model", run_add_model, "FILE", "register a model"},
    {"add-hw", run_add_hw, "FILE", "register a hardware profile"},
    {"status", run_status, NULL, "is it ready, and what has it done"},
};
enum { NSUBS = sizeof subcommands / sizeof *subcommands };

static void help(FILE *out)
{
    fputs("Usage: topt client COMMAND [ARGUMENTS]   (topt client COMMAND --help tells "
          "more)\n",
          out);
    for (int i = 0; i < NSUBS; i++)
        fprintf(out, "  %-10s %-9s %s\n", subcommands[i].name,
                subcommands[i].arg ? subcommands[i].arg : "", subcommands[i].help);
    fputs("MODEL is a file, a folder with a config.json, or model:NAME: an id or a name "
          "of\n"
          "`topt client models` (where no file is called so, the name alone).\n",
          out);
}

static int run_sub(int i, int argc, char **argv)
{
    struct client c = {.sub = subcommands[i].name,
                       .args = {.timeout = 900},
                       .began_ms = client_now_ms()};
    struct topt_error err = {0};
    char found[512];
    int nargs = 0, want = subcommands[i].arg != NULL;
    int rc = topt_options_parse(table, argc, argv, &c.args, &c.arg, want, &nargs, &err);
    if (rc > 0) {
        char usage[120];
        snprintf(usage, sizeof usage, "topt client %s %s [options]", c.sub,
                 want ? subcommands[i].arg : "");
        topt_options_help(stdout, usage, table);
        return 0;
    }
    if (rc == 0 && nargs < want)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "%s is needed; try --help",
                       subcommands[i].arg);
    if (rc == 0 && !c.args.url) {
        rc = topt_place_ask(found, sizeof found, &err);
        c.args.url = found;
    }
    if (rc == 0)
        rc = topt_trust_read(c.args.daemon_uid, &c.trust, &err);
    if (rc < 0)
        complain(&c, &err);
    else
        rc = subcommands[i].run(&c);
    return rc < 0 ? (c.status ? c.status : 1) : 0;
}

/* argv: topt-client client SUB ... */
int main(int argc, char **argv)
{
    const char *sub = argc > 2 ? argv[2] : "";
    if (!strcmp(sub, "--help") || !strcmp(sub, "-h")) {
        help(stdout);
        return 0;
    }
    for (int i = 0; i < NSUBS; i++) {
        if (strcmp(sub, subcommands[i].name))
            continue;
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int status = run_sub(i, argc - 2, argv + 2);
        curl_global_cleanup();
        return status;
    }
    char meant[TOPT_NEAR_WORDS];
    struct topt_near near = {.name = sub};
    for (int i = 0; i < NSUBS; i++)
        topt_near_try(&near, subcommands[i].name);
    fprintf(stderr, "topt client: %s%.60s%s%s (`topt client --help` lists all)\n",
            *sub ? "unknown command '" : "which command?", sub, *sub ? "'" : "",
            topt_near_words(&near, meant));
    return 2;
}
