/* lists.c - what the server keeps: plans, models, profiles, tasks; and how it is. */
#include "client.h"
#include "request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "topt_json.h"
#include "topt_label.h"

int client_get_plan(struct client *c)
{
    struct topt_error err = {0};
    char path[200];
    size_t len;
    snprintf(path, sizeof path, "/v1/plans/%.100s", c->arg);
    char *bytes = client_ask_bytes(c, path, &len);
    if (!bytes)
        return -1;
    int rc = topt_write_file(c->args.output ? c->args.output : "-", bytes, len, &err);
    free(bytes);
    return rc < 0 ? client_complain(c, &err) : 0;
}

/* What the server calls it that was sent. */
static int show_added(const struct client *c, json_t *takes)
{
    if (!takes)
        return -1;
    if (c->args.json)
        client_print_json(takes);
    else
        printf("%s  %s\n", client_words(takes, "id"), client_words(takes, "name"));
    json_decref(takes);
    return 0;
}

/* Send the file to 'to'; with the name that it gives a model. */
static int add(struct client *c, const char *to, int named)
{
    size_t len;
    struct topt_text path = {0};
    char *text = client_read_input(c, &len);
    if (!text)
        return -1;
    char name[TOPT_LABEL];
    topt_label(c->path, name);
    topt_text_add(&path, "%s", to);
    if (named)
        client_add_query(&path, "name", name);
    json_t *answer = client_ask_json(c, "POST", path.s, text, len, "application/json");
    topt_text_fini(&path);
    free(text);
    return show_added(c, answer);
}

int client_add_model(struct client *c)
{
    return add(c, "/v1/models", 1);
}

int client_add_hw(struct client *c)
{
    return add(c, "/v1/hardware", 0);
}

/* The profile becomes the next version of its name. */
int client_put_hw(struct client *c)
{
    struct topt_error err = {0};
    struct topt_text path = {0};
    size_t len;
    char *text = client_read_input(c, &len);
    json_t *doc = text ? topt_json_parse(text, len, c->path, &err) : NULL, *answer = NULL;
    const char *name = json_string_value(json_object_get(doc, "name"));
    if (doc && !name)
        topt_fail(&err, TOPT_ERR_INVAL, "%s: the profile has no name", c->path);
    if (name && strlen(name) < 80) {
        topt_text_add(&path, "/v1/hardware/");
        client_add_segment(&path, name);
        answer = client_ask_json(c, "PUT", path.s, text, len, "application/json");
    } else if (name) {
        topt_fail(&err, TOPT_ERR_INVAL, "%s: the profile's name is too long", c->path);
    }
    int rc = err.code ? client_complain(c, &err) : show_added(c, answer);
    topt_text_fini(&path);
    json_decref(doc);
    free(text);
    return rc;
}

/* Have something done to c->arg below 'at', a path, and to what is below that. */
static int act(struct client *c, const char *method, const char *at, const char *group)
{
    struct topt_text path = {0};
    topt_text_add(&path, "%s", at);
    client_add_segment(&path, c->arg);
    if (group) {
        topt_text_add(&path, "/groups/");
        client_add_segment(&path, group);
    }
    int rc = path.oom ? -1 : client_do(c, method, path.s);
    topt_text_fini(&path);
    return rc;
}

int client_delete_hw(struct client *c)
{
    return act(c, "DELETE", "/v1/hardware/", NULL);
}

/* A model or a plan of one's own, as its id says. */
static int change_sharing(struct client *c, const char *method)
{
    struct topt_error err;
    if (c->args.group)
        return act(c, method, *c->arg == 'p' ? "/v1/plans/" : "/v1/models/",
                   c->args.group);
    topt_fail(&err, TOPT_ERR_USAGE, "with whom? give --group NAME");
    return client_complain(c, &err);
}

int client_share(struct client *c)
{
    return change_sharing(c, "PUT");
}

int client_unshare(struct client *c)
{
    return change_sharing(c, "DELETE");
}

int client_forget(struct client *c)
{
    return act(c, "DELETE", *c->arg == 'p' ? "/v1/plans/" : "/v1/models/", NULL);
}

static int list(struct client *c, const char *path, const char *key)
{
    json_t *answer = client_ask_json(c, "GET", path, NULL, 0, NULL);
    if (!answer)
        return -1;
    if (c->args.json)
        client_print_json(answer);
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(answer, key), i, row)
    {
        const char *id = json_string_value(json_object_get(row, "id"));
        if (!c->args.json)
            printf("%-36s %s\n", id ? id : "shipped", client_words(row, "name"));
    }
    json_decref(answer);
    return 0;
}

int client_models(struct client *c)
{
    return list(c, "/v1/models", "models");
}

int client_hardware(struct client *c)
{
    return list(c, "/v1/hardware", "hardware");
}

/* "2026-11-22 14:05" of Unix seconds. */
static const char *date_of(const json_t *row, char buf[20])
{
    time_t t = (time_t)json_integer_value(json_object_get(row, "created"));
    struct tm tm;
    if (!t || !localtime_r(&t, &tm))
        return "?";
    strftime(buf, 20, "%Y-%m-%d %H:%M", &tm);
    return buf;
}

int client_plans(struct client *c)
{
    json_t *answer = client_ask_json(c, "GET", "/v1/plans", NULL, 0, NULL), *row;
    char date[20];
    size_t i;
    if (!answer)
        return -1;
    if (c->args.json)
        client_print_json(answer);
    json_array_foreach(json_object_get(answer, "plans"), i, row)
    {
        json_int_t gpus = json_integer_value(json_object_get(row, "gpus"));
        if (!c->args.json)
            printf("%-36s %s  %4lld GPU%s  %s\n", client_words(row, "id"),
                   date_of(row, date), (long long)gpus, gpus == 1 ? " " : "s",
                   client_words(row, "model_name"));
    }
    json_decref(answer);
    return 0;
}

/* ---- tasks ------------------------------------------------------------------------------- */

static void show_task(const json_t *task)
{
    const json_t *progress = json_object_get(task, "progress");
    const char *phase = json_string_value(json_object_get(progress, "phase"));
    json_int_t ahead = json_integer_value(json_object_get(task, "ahead"));
    double s = json_number_value(json_object_get(task, "elapsed_ms")) / 1000;
    printf("%-20s %-9s %8.1f s", client_words(task, "task"), client_words(task, "state"),
           s);
    if (ahead)
        printf("  behind %lld", (long long)ahead);
    if (phase)
        printf("  %s", phase);
    printf("\n");
}

int client_tasks(struct client *c)
{
    json_t *answer = client_ask_json(c, "GET", "/v1/tasks", NULL, 0, NULL), *row;
    size_t i;
    if (!answer)
        return -1;
    if (c->args.json)
        client_print_json(answer);
    json_array_foreach(json_object_get(answer, "tasks"), i, row)
    {
        if (!c->args.json)
            show_task(row);
    }
    json_decref(answer);
    return 0;
}

static int about_task(struct client *c, const char *method)
{
    char path[200];
    snprintf(path, sizeof path, "/v1/tasks/%.100s", c->arg);
    json_t *task = client_ask_json(c, method, path, NULL, 0, NULL);
    if (!task)
        return -1;
    if (c->args.json)
        client_print_json(task);
    else
        show_task(task);
    json_decref(task);
    return 0;
}

int client_task(struct client *c)
{
    return about_task(c, "GET");
}

int client_cancel(struct client *c)
{
    return about_task(c, "DELETE");
}

/* ---- what jobs measured ------------------------------------------------------------------- */

/* "2.15 s (said 2.01 s)"; "" where it was not measured. */
static const char *beside(const json_t *row, const char *seen, const char *said,
                          char *(*show)(int64_t, char *, size_t), char *ret, size_t size)
{
    int64_t v = json_integer_value(json_object_get(row, seen));
    int64_t w =
        json_integer_value(json_object_get(json_object_get(row, "predicted"), said));
    char a[32], b[32];
    *ret = '\0';
    if (v && w)
        snprintf(ret, size, "%s (predicted %s)", show(v, a, sizeof a),
                 show(w, b, sizeof b));
    else if (v)
        snprintf(ret, size, "%s", show(v, a, sizeof a));
    return ret;
}

/* The observations whose plans are kept still, with these plans, into the file of -o. */
static int save_observations(struct client *c, const json_t *answer)
{
    struct topt_error err = {0};
    json_t *rows = json_array(), *plans = json_array(), *row;
    size_t i, n = json_array_size(json_object_get(answer, "observations"));
    int rc = 0;
    json_array_foreach(json_object_get(answer, "observations"), i, row)
    {
        char path[200];
        snprintf(path, sizeof path, "/v1/plans/%.100s", client_words(row, "plan_id"));
        char *bytes = rc ? NULL : client_ask_if(c, path, &rc);
        json_t *plan = bytes ? json_loads(bytes, 0, NULL) : NULL;
        if (plan && !json_array_append_new(plans, plan))
            json_array_append(rows, row);
        free(bytes);
    }
    size_t kept = json_array_size(rows);
    json_t *doc = json_pack("{s:s, s:o, s:o}", "format", "topt-observations/1",
                            "observations", rows, "plans", plans);
    char *text = rc || !doc ? NULL : topt_json_text(doc, 0);
    json_decref(doc);
    if (!rc && !text)
        rc = topt_nomem(&err, "the observations");
    rc = rc ? rc : topt_write_file(c->args.output, text, strlen(text), &err);
    free(text);
    if (!rc && kept < n)
        fprintf(stderr, "note: %zu of %zu left out, whose plans are no longer kept\n",
                n - kept, n);
    return rc < 0 && err.code ? client_complain(c, &err) : rc;
}

int client_observations(struct client *c)
{
    json_t *answer = client_ask_json(c, "GET", "/v1/observations", NULL, 0, NULL), *row;
    char date[20], step[80], peak[80];
    size_t i;
    if (!answer)
        return -1;
    if (c->args.output) {
        int rc = save_observations(c, answer);
        json_decref(answer);
        return rc;
    }
    if (c->args.json)
        client_print_json(answer);
    json_array_foreach(json_object_get(answer, "observations"), i, row)
    {
        if (!c->args.json)
            printf("%-36s job %-8lld %s  step %s  memory %s%s\n",
                   client_words(row, "plan_id"),
                   (long long)json_integer_value(json_object_get(row, "job")),
                   date_of(row, date),
                   beside(row, "step_ns", "time_ns", topt_show_ns, step, sizeof step),
                   beside(row, "peak_bytes", "memory_bytes", topt_show_bytes, peak,
                          sizeof peak),
                   json_is_true(json_object_get(row, "confirmed")) ? "  confirmed" : "");
    }
    json_decref(answer);
    return 0;
}

static void show_factor(const json_t *row, const char *what)
{
    const json_t *f = json_object_get(row, what);
    json_int_t jobs = json_integer_value(json_object_get(f, "jobs"));
    json_int_t users = json_integer_value(json_object_get(f, "users"));
    if (!f)
        return;
    printf("  %s x %.3f of %lld job%s", what,
           json_number_value(json_object_get(f, "factor")), (long long)jobs,
           jobs == 1 ? "" : "s");
    if (!strcmp(client_words(f, "of"), "yours"))
        printf(" of yours");
    else
        printf(" of %lld users", (long long)users);
}

int client_corrections(struct client *c)
{
    json_t *answer = client_ask_json(c, "GET", "/v1/corrections", NULL, 0, NULL), *row;
    size_t i;
    if (!answer)
        return -1;
    if (c->args.json)
        client_print_json(answer);
    json_array_foreach(json_object_get(answer, "corrections"), i, row)
    {
        if (c->args.json)
            continue;
        printf("%s on %s", client_words(row, "model_id"), client_words(row, "hw_id"));
        show_factor(row, "time");
        show_factor(row, "memory");
        printf("\n");
    }
    json_decref(answer);
    return 0;
}

int client_reset_correction(struct client *c)
{
    struct topt_error err;
    struct topt_text path = {0};
    if (!*c->args.asked.hw) {
        topt_fail(&err, TOPT_ERR_USAGE, "on which profile? give --hw ID");
        return client_complain(c, &err);
    }
    topt_text_add(&path, "/v1/corrections/");
    client_add_segment(&path, c->arg);
    topt_text_add(&path, "/");
    client_add_segment(&path, c->args.asked.hw);
    int rc = path.oom ? -1 : client_do(c, "DELETE", path.s);
    topt_text_fini(&path);
    return rc;
}

/* ---- the server -------------------------------------------------------------------------- */

/* Does a line of metrics say that there was none? */
static int is_zero(const char *line)
{
    const char *value = strrchr(line, ' ');
    return value && !strcmp(value, " 0");
}

int client_status(struct client *c)
{
    enum { MOST_S = 3 }; /* nothing is searched for it */
    size_t len;
    int rc;
    if (c->args.timeout > MOST_S)
        c->args.timeout = MOST_S;
    char *bytes = client_ask_bytes(c, "/readyz", &len);
    if (!bytes)
        return -1;
    free(bytes);
    printf("%s is ready\n", c->args.url);
    bytes = client_ask_if(c, "/metrics", &rc); /* they are for operators */
    for (char *next = bytes, *line; next && (line = strsep(&next, "\n"));)
        if (*line && *line != '#' && !strstr(line, "_bucket{") && !is_zero(line))
            printf("  %s\n", line);
    free(bytes);
    return rc;
}
