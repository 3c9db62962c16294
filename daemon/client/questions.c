/* questions.c - questions about a model: its plan, its curve, its frontier.
 *
 * Options of a question are read here as everywhere, so a value that no field can have is refused at
 * once; what the words mean the server knows. */
#include "client.h"
#include "topt_hint.h"
#include "request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "topt_json.h"
#include "topt_label.h"
#include "topt_plan.h"
#include "topt_show_plan.h"
#include "topt_unequal_text.h"

/* ---- showing ----------------------------------------------------------------------------- */

/* What finished jobs say of time or memory; their words begin with 'sep'. */
static void show_part(const json_t *f, const char *what, const char *sep)
{
    json_int_t jobs = json_integer_value(json_object_get(f, "jobs"));
    printf("%s%s %.3f times the prediction on %lld job%s of ", sep, what,
           json_number_value(json_object_get(f, "factor")), (long long)jobs,
           jobs == 1 ? "" : "s");
    if (!strcmp(client_words(f, "of"), "yours"))
        printf("yours");
    else
        printf("%lld users", (long long)json_integer_value(json_object_get(f, "users")));
}

/* What finished jobs make of what was predicted; nothing where none has reported. */
static void show_correction(const json_t *c)
{
    const json_t *time = json_object_get(c, "time"), *mem = json_object_get(c, "memory");
    int64_t ns = json_integer_value(json_object_get(c, "time_ns"));
    int64_t bytes = json_integer_value(json_object_get(c, "memory_bytes"));
    char text[32];
    if (!time && !mem)
        return;
    printf("measured  ");
    if (ns)
        printf("%s per step", topt_show_ns(ns, text, sizeof text));
    if (bytes)
        printf("%s%s per GPU", ns ? ", " : "", topt_show_bytes(bytes, text, sizeof text));
    printf(" are to be expected:\n          ");
    if (time)
        show_part(time, "time", "");
    if (mem)
        show_part(mem, "memory", time ? "; " : "");
    printf("\n");
}

/* A line with the heterogeneous job of a plan on several groups, and one that says what is where. */
static void show_parts(const json_t *slurm)
{
    const json_t *part;
    size_t i, n = json_array_size(json_object_get(slurm, "parts"));
    printf("slurm     %s\n          parts of a heterogeneous job, ",
           client_words(slurm, "flags"));
    json_array_foreach(json_object_get(slurm, "parts"), i, part)
        printf("%s%s",
               i == 0      ? ""
               : i + 1 < n ? ", "
                           : " and ",
               client_words(part, "group"));
    printf(": each also needs the --partition or --constraint of its nodes;\n"
           "          topt launch PLAN --sbatch writes its script\n");
}

/* An answer on several groups of GPUs, as `topt plan` prints it. */
static int show_groups(const json_t *a)
{
    char *text = topt_unequal_text(a), *rows = topt_groups_text(a);
    fputs(text ? text : "", stdout);
    fputs(rows ? rows : "", stdout);
    show_correction(json_object_get(a, "correction"));
    if (json_object_get(a, "plan_id"))
        show_parts(json_object_get(a, "slurm"));
    free(text);
    free(rows);
    return 0;
}

/* The same as `topt plan`, and what to ask next. */
static int show_plan(const struct client *c, const json_t *a)
{
    if (topt_is_unequal(a))
        return show_groups(a);
    char *hint = hint_line(a, "--min-efficiency ");
    topt_show_plan(a, c->args.output);
    show_correction(json_object_get(a, "correction"));
    if (hint)
        printf("or        %s\n", hint);
    printf("slurm     %s\n", client_words(json_object_get(a, "slurm"), "flags"));
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
        return client_complain(c, &err);
    return c->args.json ? client_print_json(curve) : show_curve(curve);
}

/* ---- asking ------------------------------------------------------------------------------ */

static void add_field(void *path, const char *name, const char *value)
{
    client_add_query(path, name, value);
}

static void add_question(struct client *c, struct topt_text *path)
{
    c->args.asked.wait_ms = client_wait_ms(c);
    if (topt_query_each(&c->args.asked, add_field, path))
        path->oom = 1;
}

/* The question about the model in the file c->arg, put to /v1/plan. */
static json_t *ask_about_file(struct client *c)
{
    size_t len;
    char *text = client_read_input(c, &len);
    struct topt_text path = {0};
    if (!text)
        return NULL;
    char name[TOPT_LABEL];
    topt_label(c->path, name);
    topt_text_add(&path, "/v1/plan");
    add_question(c, &path);
    client_add_query(&path, "name", name);
    json_t *answer =
        client_ask_json(c, "POST", path.s, text, len, "application/octet-stream");
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
    json_t *answer =
        client_ask_json(c, "POST", path.s, "", 0, "application/octet-stream");
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
    return rc < 0 ? client_complain(c, &err) : 0;
}

int client_plan(struct client *c)
{
    json_t *answer = ask_about_model(c);
    if (!answer)
        return -1;
    int rc = c->args.output ? save_plan(c, answer) : 0;
    if (rc == 0)
        rc = json_object_get(answer, "points") ? put_curve(c, answer)
             : c->args.json                    ? client_print_json(answer)
                                               : show_plan(c, answer);
    json_decref(answer);
    return rc;
}

int client_curve(struct client *c)
{
    strcpy(c->args.asked.mode, "profiling");
    json_t *curve = ask_about_model(c);
    if (!curve)
        return -1;
    int rc = put_curve(c, curve);
    json_decref(curve);
    return rc;
}

/* The id of the model that c->arg means; a file is registered.  0, or -1. */
static int model_id(struct client *c, struct topt_text *ret)
{
    const char *key = registered(c);
    if (key) {
        topt_text_add(ret, "%s", key);
        return 0;
    }
    size_t len;
    struct topt_text path = {0};
    char *text = client_read_input(c, &len), name[TOPT_LABEL];
    if (!text)
        return -1;
    topt_label(c->path, name);
    topt_text_add(&path, "/v1/models");
    client_add_query(&path, "name", name);
    json_t *answer =
        client_ask_json(c, "POST", path.s, text, len, "application/octet-stream");
    if (answer)
        topt_text_add(ret, "%s", client_words(answer, "id"));
    json_decref(answer);
    topt_text_fini(&path);
    free(text);
    return answer ? 0 : -1;
}

static int put_frontier(struct client *c, const json_t *frontier)
{
    struct topt_error err = {0};
    char *svg = c->args.svg ? topt_svg_frontier(frontier) : NULL;
    if (svg && topt_write_file(c->args.svg, svg, strlen(svg), &err) < 0) {
        free(svg);
        return client_complain(c, &err);
    }
    free(svg);
    if (c->args.json)
        return client_print_json(frontier);
    char *text = topt_plot_frontier(frontier, terminal_width());
    if (!text)
        return -1;
    fputs(text, stdout);
    free(text);
    return 0;
}

int client_frontier(struct client *c)
{
    struct topt_text id = {0}, path = {0};
    json_t *frontier = NULL;
    if (model_id(c, &id) == 0) {
        topt_text_add(&path, "/v1/models/%s/frontier", id.s);
        add_question(c, &path);
        frontier = client_ask_json(c, "GET", path.s, NULL, 0, NULL);
    }
    int rc = frontier ? put_frontier(c, frontier) : -1;
    json_decref(frontier);
    topt_text_fini(&path);
    topt_text_fini(&id);
    return rc;
}
