/* savings.c - jobs by the GPU-hours that fewer GPUs would have saved, by user and account.
 *
 * Of what jobs measured (topt client observe, topt run): a user's own, of an operator all.  A
 * job's GPU-hours are those of accounting, where that knows it, else of the steps that it
 * reported.  What fewer GPUs would have saved is the share by which a step of the same
 * question costs fewer GPU-seconds on the cheapest smaller number, by prediction both. */
#include "client.h"
#include "request.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_clock.h"
#include "topt_command.h"
#include "topt_svg.h"

enum { SACCT_MS = 10000, WORD = 64 };

struct saving {
    int64_t job, gpus, fewer; /* fewer 0: none would have saved anything */
    int64_t elapsed_s, peak_bytes;
    char user[WORD], account[WORD];
    double hours, saved; /* GPU-hours */
};

struct table {
    struct saving *row;
    size_t n, unknown; /* of so many it isn't known what they took, or would have */
    json_t *curves;    /* by plan */
};

/* ---- what is known of jobs --------------------------------------------------------- */

static int64_t number_at(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* GPUs that the plan is for. */
static int64_t gpus_of(const json_t *plan)
{
    const json_t *mesh = json_object_get(plan, "mesh");
    return number_at(mesh, "nodes") * number_at(mesh, "gpus_per_node");
}

/* The curve of the plan's question up to its own number, which is in it as "plan_gpus";
 * borrowed, without points where the plan is not known. */
static const json_t *curve_of(struct client *c, struct table *t, const json_t *row)
{
    const char *id = client_words(row, "plan_id");
    const json_t *known = json_object_get(t->curves, id);
    struct topt_text path = {0};
    char most[24];
    if (known)
        return known;
    json_t *plan = client_kept_plan(c, row), *curve = NULL;
    if (plan) {
        snprintf(most, sizeof most, "%lld", (long long)gpus_of(plan));
        topt_text_add(&path, "/v1/models/%s/curve", client_words(row, "model_id"));
        client_add_plan_question(&path, plan);
        client_add_query(&path, "max_gpus", most);
        curve = client_ask_json(c, "GET", path.s, NULL, 0, NULL);
    }
    if (!curve)
        curve = json_object();
    json_object_set_new(curve, "plan_gpus", json_integer(gpus_of(plan)));
    json_object_set_new(t->curves, id, curve);
    json_decref(plan);
    topt_text_fini(&path);
    return json_object_get(t->curves, id);
}

/* GPU-seconds of a step at a point; 0 where the job doesn't fit. */
static double cost_of(const json_t *point)
{
    return (double)number_at(point, "gpus") * (double)number_at(point, "time_ns");
}

/* The share of its GPU-hours that the cheapest smaller number saves; -1: not known. */
static double share_of(const json_t *curve, int64_t gpus, int64_t *ret_fewer)
{
    const json_t *p;
    size_t i;
    double own = 0, least = 0;
    json_array_foreach(json_object_get(curve, "points"), i, p)
    {
        int64_t n = number_at(p, "gpus");
        double cost = cost_of(p);
        if (n == gpus)
            own = cost;
        if (n < gpus && cost > 0 && (least <= 0 || cost < least)) {
            least = cost;
            *ret_fewer = n;
        }
    }
    if (own <= 0)
        return -1;
    if (least > 0 && least < own)
        return 1 - least / own;
    *ret_fewer = 0;
    return 0;
}

static void name_user(int64_t uid, char ret[WORD])
{
    const struct passwd *p = getpwuid((uid_t)uid);
    if (p)
        snprintf(ret, WORD, "%s", p->pw_name);
    else
        snprintf(ret, WORD, "%lld", (long long)uid);
}

/* A line of sacct: "17|physics|3600". */
static void take_account(struct table *t, char *line)
{
    const char *id = strsep(&line, "|"), *account = strsep(&line, "|");
    const char *elapsed = strsep(&line, "|");
    for (size_t i = 0; elapsed && i < t->n; i++) {
        struct saving *s = &t->row[i];
        if (s->job != strtoll(id, NULL, 10))
            continue;
        snprintf(s->account, sizeof s->account, "%s", account);
        s->elapsed_s = strtoll(elapsed, NULL, 10);
    }
}

/* Accounts and times of the jobs, where there is accounting. */
static void ask_accounting(struct table *t)
{
    struct topt_text jobs = {0}, said = {0};
    for (size_t i = 0; i < t->n; i++)
        topt_text_add(&jobs, "%s%lld", i ? "," : "", (long long)t->row[i].job);
    const char *const args[] = {
        "sacct", "-nPX", "-j", jobs.s, "--format=JobIDRaw,Account,ElapsedRaw", NULL};
    if (!jobs.oom && t->n &&
        !topt_command_read(args, topt_clock_ms() + SACCT_MS, &said, NULL)) {
        char *save = NULL;
        for (char *l = strtok_r(said.s, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
            take_account(t, l);
    }
    topt_text_fini(&jobs);
    topt_text_fini(&said);
}

/* ---- the table --------------------------------------------------------------------- */

static int by_saved(const void *a, const void *b)
{
    const struct saving *x = a, *y = b;
    if (x->saved < y->saved || x->saved > y->saved)
        return x->saved > y->saved ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

static int fill(struct client *c, const json_t *answer, struct table *t)
{
    const json_t *rows = json_object_get(answer, "observations"), *row;
    size_t i, kept = 0;
    t->row = calloc(json_array_size(rows) + 1, sizeof *t->row);
    t->curves = json_object();
    if (!t->row || !t->curves)
        return client_complain(c, &(struct topt_error){TOPT_ERR_NOMEM, 0, "no memory"});
    json_array_foreach(rows, i, row) t->row[t->n++].job = number_at(row, "job");
    ask_accounting(t);
    json_array_foreach(rows, i, row)
    {
        struct saving s = t->row[i];
        const json_t *curve = curve_of(c, t, row);
        s.gpus = number_at(curve, "plan_gpus");
        s.peak_bytes = number_at(row, "peak_bytes");
        double seconds = s.elapsed_s ? (double)s.elapsed_s
                                     : (double)number_at(row, "step_ns") / 1e9 *
                                           (double)number_at(row, "steps");
        double share = share_of(curve, s.gpus, &s.fewer);
        name_user(number_at(row, "uid"), s.user);
        s.hours = seconds * (double)s.gpus / 3600;
        s.saved = share > 0 ? s.hours * share : 0;
        if (seconds > 0 && share >= 0)
            t->row[kept++] = s;
    }
    t->unknown = t->n - kept;
    t->n = kept;
    qsort(t->row, t->n, sizeof *t->row, by_saved);
    return 0;
}

/* Sums of jobs that have the same word: of users, or of accounts. */
struct sum {
    const char *word;
    size_t jobs;
    double hours, saved;
};

static int by_sum(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    if (x->saved < y->saved || x->saved > y->saved)
        return x->saved > y->saved ? -1 : 1;
    return strcmp(x->word, y->word);
}

static size_t sum_up(const struct table *t, int of_accounts, struct sum *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const char *word = of_accounts ? t->row[i].account : t->row[i].user;
        size_t k = 0;
        while (k < n && strcmp(ret[k].word, word) != 0)
            k++;
        if (k == n)
            ret[n++] = (struct sum){.word = word};
        ret[k].jobs++;
        ret[k].hours += t->row[i].hours;
        ret[k].saved += t->row[i].saved;
    }
    qsort(ret, n, sizeof *ret, by_sum);
    return n;
}

/* ---- as text, CSV and a page ------------------------------------------------------- */

static void add_sums(struct topt_text *out, const struct table *t, int of_accounts,
                     const char *format)
{
    struct sum *sum = calloc(t->n + 1, sizeof *sum);
    size_t n = sum ? sum_up(t, of_accounts, sum) : 0;
    out->oom |= !sum;
    for (size_t i = 0; i < n; i++) {
        struct topt_text word = {0};
        topt_svg_escape(&word, *sum[i].word ? sum[i].word : "-");
        if (*format == '<')
            topt_text_add(out, "<tr><td>%s<td>%zu<td>%.1f<td>%.1f\n",
                          word.s ? word.s : "", sum[i].jobs, sum[i].hours, sum[i].saved);
        else
            topt_text_add(out, "%-12s %6zu %10.1f %10.1f\n",
                          *sum[i].word ? sum[i].word : "-", sum[i].jobs, sum[i].hours,
                          sum[i].saved);
        topt_text_fini(&word);
    }
    free(sum);
}

/* Sentences with the totals, and with the jobs that the totals leave out. */
static void add_summary(struct topt_text *out, const struct table *t)
{
    double hours = 0, saved = 0;
    for (size_t i = 0; i < t->n; i++) {
        hours += t->row[i].hours;
        saved += t->row[i].saved;
    }
    if (t->n)
        topt_text_add(
            out,
            "%zu job%s took %.1f GPU-hours; on the fewer GPUs named here the same "
            "steps would have taken %.1f less (%.0f %%), as topt predicts.\n",
            t->n, t->n == 1 ? "" : "s", hours, saved,
            hours > 0 ? 100 * saved / hours : 0);
    else if (!t->unknown)
        topt_text_add(out,
                      "No job has reported what it measured: topt run does as it ends, "
                      "another script by topt client observe.\n");
    if (t->unknown)
        topt_text_add(out,
                      "left out: %zu job%s that reported no steps and %s not in "
                      "accounting, or whose plan is no longer kept\n",
                      t->unknown, t->unknown == 1 ? "" : "s",
                      t->unknown == 1 ? "is" : "are");
}

static void add_text(struct topt_text *out, const struct table *t)
{
    static const char *const heads[] = {"user", "account"};
    add_summary(out, t);
    if (!t->n)
        return;
    topt_text_add(out, "\n");
    topt_text_add(out, "%8s  %-12s %-12s %5s %5s %10s %10s  %s\n", "job", "user",
                  "account", "GPUs", "fewer", "GPU-hours", "saved", "memory");
    for (size_t i = 0; i < t->n; i++) {
        const struct saving *s = &t->row[i];
        char memory[32];
        topt_text_add(out, "%8lld  %-12s %-12s %5lld %5lld %10.1f %10.1f  %s\n",
                      (long long)s->job, s->user, *s->account ? s->account : "-",
                      (long long)s->gpus, (long long)s->fewer, s->hours, s->saved,
                      s->peak_bytes ? topt_show_bytes(s->peak_bytes, memory, 32) : "-");
    }
    for (int k = 0; k < 2; k++) {
        topt_text_add(out, "\n%-12s %6s %10s %10s\n", heads[k], "jobs", "GPU-hours",
                      "saved");
        add_sums(out, t, k, "");
    }
}

/* Names of users and accounts hold no commas or quotes: Slurm and passwd forbid them. */
static void add_csv(struct topt_text *out, const struct table *t)
{
    topt_text_add(out, "job,user,account,gpus,fewer_gpus,gpu_hours,saved_gpu_hours,"
                       "peak_bytes\r\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct saving *s = &t->row[i];
        topt_text_add(out, "%lld,%s,%s,%lld,%lld,%.3f,%.3f,%lld\r\n", (long long)s->job,
                      s->user, s->account, (long long)s->gpus, (long long)s->fewer,
                      s->hours, s->saved, (long long)s->peak_bytes);
    }
}

static void add_page(struct topt_text *out, const struct table *t)
{
    static const char *const heads[] = {"user", "account"};
    topt_text_add(out,
                  "<!DOCTYPE html>\n<html lang='en'><meta charset='utf-8'>"
                  "<title>GPU-hours that fewer GPUs would have saved</title>\n<style>"
                  "body{font:15px system-ui,sans-serif;margin:2em auto;max-width:60em}"
                  "table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;"
                  "text-align:right;border-bottom:1px solid #8884}"
                  ":root{color-scheme:light dark}</style>\n"
                  "<h1>GPU-hours that fewer GPUs would have saved</h1>\n<p>");
    add_summary(out, t);
    for (int k = 0; k < 2; k++) {
        topt_text_add(out, "<table><tr><th>%s<th>jobs<th>GPU-hours<th>saved\n", heads[k]);
        add_sums(out, t, k, "<");
        topt_text_add(out, "</table>\n");
    }
    topt_text_add(out, "<table><tr><th>job<th>user<th>account<th>GPUs<th>fewer"
                       "<th>GPU-hours<th>saved<th>memory\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct saving *s = &t->row[i];
        char memory[32];
        topt_text_add(out, "<tr><td>%lld<td>", (long long)s->job);
        topt_svg_escape(out, s->user);
        topt_text_add(out, "<td>");
        topt_svg_escape(out, *s->account ? s->account : "-");
        topt_text_add(out, "<td>%lld<td>%lld<td>%.1f<td>%.1f<td>%s\n", (long long)s->gpus,
                      (long long)s->fewer, s->hours, s->saved,
                      s->peak_bytes ? topt_show_bytes(s->peak_bytes, memory, 32) : "-");
    }
    topt_text_add(out, "</table>\n");
}

static int ends_with(const char *s, const char *end)
{
    size_t n = s ? strlen(s) : 0, m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

static int put(struct client *c, const struct table *t)
{
    const char *to = c->args.output;
    struct topt_error err = {0};
    struct topt_text out = {0};
    if (ends_with(to, ".csv"))
        add_csv(&out, t);
    else if (ends_with(to, ".html"))
        add_page(&out, t);
    else
        add_text(&out, t);
    int rc = out.oom ? topt_nomem(&err, "the table")
                     : topt_write_file(to ? to : "-", out.s, out.len, &err);
    topt_text_fini(&out);
    return rc ? client_complain(c, &err) : 0;
}

int client_savings(struct client *c)
{
    struct table t = {0};
    json_t *answer = client_ask_json(c, "GET", "/v1/observations", NULL, 0, NULL);
    int rc = answer ? fill(c, answer, &t) : -1;
    if (!rc)
        rc = put(c, &t);
    free(t.row);
    json_decref(t.curves);
    json_decref(answer);
    return rc;
}
