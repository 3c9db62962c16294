/* ask.c - questions about a model and a cluster, from the command line: one table of options, one
 * loader, and what all answers are written with. */
#include "ask.h"
#include "hw_here.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "topt_carry.h"
#include "topt_json.h"
#include "topt_run.h"
#include "topt_pool.h"
#include "topt_search.h"
#include "topt_search_cmd.h"
#include "topt_text.h"

int topt_cli_fail(const char *command, const struct topt_error *err)
{
    fprintf(stderr, "topt %s: %s\n", command, err->text);
    return topt_err_exit(err->code);
}

void topt_ask_fini(struct topt_question *q)
{
    topt_model_destroy(q->model);
    topt_model_destroy(q->apart);
    topt_hw_destroy(q->hw);
    json_decref(q->run_notes);
}

static int read_batches(struct topt_question *q, struct topt_error *err)
{
    const char *list = q->a.batch;
    q->batch_auto = list && !strcmp(list, "auto");
    if (list && !q->batch_auto &&
        topt_parse_counts(list, (int64_t)1 << 30, q->batch, TOPT_FIELD_COUNTS_MOST,
                          &q->nbatch, err))
        return topt_wrap(err, "--batch");
    q->a.asked.batch = q->nbatch ? q->batch[0] : 0;
    return 0;
}

/* Profiles with commas between, unless that is a file. */
static int read_hardware(struct topt_question *q, struct topt_error *err)
{
    const char *at = NULL;
    int rc = 0;
    if (!q->a.hw || !access(q->a.hw, R_OK) || !strchr(q->a.hw, ','))
        return 0;
    while (q->nhw < TOPT_ASK_HARDWARE &&
           (rc = topt_list_next(q->a.hw, &at, q->hw_name[q->nhw], sizeof q->hw_name[0],
                                err)) > 0)
        q->nhw++;
    if (rc < 0)
        return topt_wrap(err, "--hw");
    if (rc > 0)
        return topt_fail(err, TOPT_ERR_USAGE, "--hw takes at most %d profiles",
                         TOPT_ASK_HARDWARE - 1);
    q->a.hw = q->hw_name[0];
    return 0;
}

/* One price for all profiles, or one for each. */
static int read_prices(struct topt_question *q, struct topt_error *err)
{
    char list[TOPT_ASK_HARDWARE * 16], *at = list, *price;
    int n = 0;
    if (!q->a.price)
        return 0;
    if (strlen(q->a.price) >= sizeof list)
        return topt_fail(err, TOPT_ERR_USAGE, "--price is too long");
    strcpy(list, q->a.price);
    while ((price = strsep(&at, ","))) {
        if (n == TOPT_ASK_HARDWARE || topt_query_option(&q->a.asked, "price", price, err))
            return n == TOPT_ASK_HARDWARE
                       ? topt_fail(err, TOPT_ERR_USAGE, "--price lists too many")
                       : -1;
        q->hw_price[n++] = q->a.asked.price;
    }
    for (int i = n; n == 1 && i < q->nhw; i++)
        q->hw_price[i] = q->hw_price[0];
    q->a.asked.price = q->hw_price[0];
    if (n == 1 || n == q->nhw)
        return 0;
    return topt_fail(err, TOPT_ERR_USAGE,
                     "--price lists %d prices and --hw %d profile%s; give one price, or "
                     "one for each profile",
                     n, q->nhw ? q->nhw : 1, q->nhw > 1 ? "s" : "");
}

/* Where nothing was said work is counted, so that an answer does not depend on what else the
 * machine does. */
static int read_limit(struct topt_args *a, struct topt_error *err)
{
    a->seconds = 0;
    if (!a->limit && !a->work)
        a->work = TOPT_ASK_WORK;
    else if (a->limit && !strcmp(a->limit, "none"))
        a->seconds = 0;
    else if (a->limit && topt_parse_real(a->limit, 1, &a->seconds, err))
        return topt_wrap(err, "--seconds");
    return 0;
}

/* A run that exists says what was not asked; the request is that of a plan beside it. */
static int read_run(struct topt_question *q, struct topt_error *err)
{
    struct topt_args *a = &q->a;
    const char *path = *a->as_is ? a->as_is : q->path, *source = "";
    int64_t gpus = a->asked.ngpus == 1 ? a->asked.gpus[0] : 0;
    if (*a->asked.mode && strcmp(a->asked.mode, "mini-time"))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--as-is is about the GPUs of one run; leave out --mode");
    if (q->nbatch > 1 || q->batch_auto || q->nhw > 1)
        return topt_fail(err, TOPT_ERR_USAGE, "--as-is takes one --batch and one --hw");
    json_t *run = topt_run_load(path, gpus, err);
    int rc = run ? topt_run_ask(run, &a->asked, &source, err) : -1;
    q->run_notes = json_incref(json_object_get(run, "notes"));
    json_decref(run);
    if (rc)
        return topt_wrap(err, "--as-is");
    q->run_asked = a->asked;
    a->asked = topt_run_left_out(&q->run_asked);
    topt_request_init(&q->run);
    return topt_request_read(&q->run_asked, &q->run, NULL, err);
}

static int read_asked(struct topt_question *q, struct topt_error *err)
{
    const struct topt_args *a = &q->a;
    struct topt_request *r = &q->r;
    r->counts = TOPT_COUNTS_WHOLE;
    if (topt_request_read(&a->asked, r, NULL, err))
        return -1;
    r->max_work = a->work;
    r->max_entries = a->entries;
    return topt_search_threads(a->threads, &r->threads, err);
}

static struct topt_model *load_model(const struct topt_question *q, int64_t batch,
                                     int apart, struct topt_error *err)
{
    struct topt_import_options o = {.batch = batch,
                                    .seq = q->a.asked.seq,
                                    .document_length = q->a.asked.document_length,
                                    .mtp = q->a.asked.mtp,
                                    .loss = q->a.loss,
                                    .train = *q->a.asked.train ? q->a.asked.train : NULL,
                                    .as = q->a.as,
                                    .part = q->a.part,
                                    .capacity = q->a.capacity,
                                    .apart = apart | topt_query_apart(&q->a.asked)};
    return topt_model_load(q->path, &o, err);
}

int topt_ask_batch(struct topt_question *q, int64_t batch, struct topt_error *err)
{
    struct topt_model *m = load_model(q, batch, 0, err);
    if (!m)
        return -1;
    topt_model_destroy(q->model);
    topt_model_destroy(q->apart);
    q->r.model = q->model = m;
    q->r.apart = q->apart = NULL;
    if (!topt_request_wants_apart(&q->r))
        return 0;
    q->r.apart = q->apart = load_model(q, batch, TOPT_APART_HEADS, err);
    return q->apart ? 0 : -1;
}

int topt_ask_apart(struct topt_question *q, struct topt_error *err)
{
    struct topt_model *m = load_model(q, q->model->batch, TOPT_APART_HEADS, err);
    if (!m)
        return -1;
    topt_model_destroy(q->model);
    q->r.model = q->model = m;
    return 0;
}

/* The profile, with nodes of fewer GPUs where these are asked for. */
static int load_hw(struct topt_question *q, struct topt_error *err)
{
    q->hw = topt_hw_load(q->a.hw, err);
    if (!q->hw || !q->a.asked.gpus_per_node)
        return q->hw ? 0 : -1;
    struct topt_hw *whole = q->hw;
    q->hw = topt_hw_of_nodes(whole, q->a.asked.gpus_per_node, err);
    topt_hw_destroy(whole);
    return q->hw ? 0 : topt_wrap(err, "--gpus-per-node");
}

static int take_hw(struct topt_question *q, struct topt_error *err)
{
    if (load_hw(q, err))
        return -1;
    q->r.hw = q->run.hw = q->hw;
    q->run.model = q->model;
    q->run.apart = q->apart;
    q->run.threads = q->r.threads;
    if (!topt_request_complete(&q->r, err) &&
        (!q->a.as_is || !topt_request_complete(&q->run, err)))
        return 0;
    if (err && err->code == TOPT_ERR_INVAL)
        err->code = TOPT_ERR_USAGE;
    return -1;
}

/* Without --hw: that of the GPUs at hand, which is said. */
static int choose_hw(struct topt_question *q, struct topt_error *err)
{
    struct topt_text said = {0};
    int rc = topt_hw_here(&q->a.hw, &said, err);
    if (!rc && !q->a.hw)
        rc = topt_fail(err, TOPT_ERR_USAGE,
                       "--hw is needed; `topt hw list` shows profiles");
    else if (!rc && !q->a.quiet)
        fprintf(stderr, "note: --hw %s, as %s\n", q->a.hw, said.s ? said.s : "");
    topt_text_fini(&said);
    return rc;
}

static int load(struct topt_question *q, struct topt_error *err)
{
    if (!q->a.hw && choose_hw(q, err))
        return -1;
    if (topt_ask_batch(q, q->a.asked.batch, err))
        return -1;
    q->said = q->r;
    return take_hw(q, err);
}

int topt_ask_hw(struct topt_question *q, int i, struct topt_error *err)
{
    struct topt_request now = q->r;
    q->a.hw = q->hw_name[i];
    q->r = q->said;
    q->r.model = q->model;
    q->r.apart = q->apart;
    q->r.mode = now.mode;
    q->r.gpus = now.gpus;
    q->r.max_work = now.max_work;
    q->r.stop = now.stop;
    q->r.progress = now.progress;
    q->r.totals.price = q->hw_price[i];
    topt_hw_destroy(q->hw);
    q->hw = NULL;
    return take_hw(q, err);
}

int topt_ask(struct topt_question *q, const struct topt_option *table, const char *usage,
             const char *framework, int argc, char **argv, struct topt_error *err)
{
    const char *model[1];
    int n;
    memset(q, 0, sizeof *q);
    q->a.threads = topt_pool_processors();
    q->a.count = 1;
    topt_request_init(&q->r);
    int rc = topt_options_parse(table, argc, argv, &q->a, model, 1, &n, err);
    if (rc == 1)
        topt_options_help(stdout, usage, table);
    if (rc)
        return rc;
    if (n == 0 && q->a.as_is && *q->a.as_is) /* the word after it is the model's file */
        model[n++] = q->a.as_is;
    if (n != 1)
        return topt_fail(err, TOPT_ERR_USAGE, "which model? usage: %.*s",
                         (int)strcspn(usage, "\n"), usage);
    q->path = model[0];
    if (read_batches(q, err) || read_hardware(q, err) || read_prices(q, err) ||
        (q->a.as_is && read_run(q, err)) || read_limit(&q->a, err) ||
        read_asked(q, err)) {
        if (err->code == TOPT_ERR_INVAL)
            err->code = TOPT_ERR_USAGE;
        return -1;
    }
    if (!q->r.framework && framework &&
        topt_framework_find(framework, &q->r.framework, err))
        return -1;
    if (q->nhw > 1 && strcmp(argv[0], "plan"))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--hw takes one profile here; topt plan takes several");
    q->r.seed = (uint64_t)q->a.seed;
    q->r.proposals = q->a.proposals;
    q->r.systems = q->a.systems;
    return load(q, err);
}

int topt_cli_write_json(const json_t *doc, const char *path, struct topt_error *err)
{
    char *text = topt_json_text(doc, 1);
    if (!text)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the output");
    size_t n = strlen(text);
    text[n] = '\n';
    int rc = topt_write_file(path, text, n + 1, err);
    free(text);
    return rc;
}

void topt_ask_watch(struct topt_question *q)
{
    q->r.progress = topt_watch_start(&q->watch, q->a.quiet || q->a.json);
}

void topt_ask_begin(struct topt_question *q)
{
    q->r.stop = topt_stop_after(q->a.seconds);
    q->r.seconds = q->a.seconds;
    q->r.arm = topt_stop_again;
    topt_ask_watch(q);
}

void topt_ask_end(struct topt_question *q, json_t *doc)
{
    topt_watch_stop(&q->watch);
    if (!json_is_true(json_object_get(doc, "stopped")))
        return;
    if (topt_stop_was_in_time())
        json_object_set_new(doc, "stopped_after_s", json_real(q->a.seconds));
    else if (q->r.max_work && !json_object_get(doc, "too_large"))
        json_object_set_new(doc, "stopped_after_work", json_integer(q->r.max_work));
}

int topt_cli_width(void)
{
    struct winsize w;
    if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col >= 40)
        return w.ws_col;
    return 100;
}

int topt_cli_plan(const struct topt_option *options, const char *usage, int argc,
                  char **argv, void *args, const char *path[1], struct topt_error *err)
{
    int n, rc = topt_options_parse(options, argc, argv, args, path, 1, &n, err);
    if (rc == 1)
        topt_options_help(stdout, usage, options);
    if (!rc && n != 1)
        rc = topt_fail(err, TOPT_ERR_USAGE, "which plan? usage: %.*s",
                       (int)strcspn(usage, "\n"), usage);
    return rc;
}

enum { MAX_PLAN_FILE = 64 << 20 };

json_t *topt_cli_read_plan(const char *plan, struct topt_error *err)
{
    char *doc = NULL;
    size_t len = 0;
    if (access(plan, R_OK) == 0 || !topt_is_id(plan))
        return topt_json_load(plan, MAX_PLAN_FILE, err);
    int found = topt_carry_plan(plan, &doc, &len, err);
    json_t *ret = found > 0 ? topt_json_parse(doc, len, plan, err) : NULL;
    free(doc);
    if (!found)
        topt_fail(err, TOPT_ERR_NOTFOUND,
                  "%s is not carried by this job; write it with topt client get-plan %s "
                  "-o plan.json",
                  plan, plan);
    return ret;
}
