/* ask.c - questions about a model and a cluster, from the command line: one table of options, one
 * loader, and what all answers are written with. */
#include "ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "topt_json.h"
#include "topt_pool.h"
#include "topt_text.h"

int topt_cli_fail(const char *command, const struct topt_error *err)
{
    fprintf(stderr, "topt %s: %s\n", command, err->text);
    return topt_err_exit(err->code);
}

void topt_ask_fini(struct topt_question *q)
{
    topt_model_destroy(q->model);
    topt_hw_destroy(q->hw);
}

static int read_counts(struct topt_question *q, struct topt_error *err)
{
    char list[512];
    if (!q->a.gpus)
        return 0;
    if (strlen(q->a.gpus) >= sizeof list)
        return topt_fail(err, TOPT_ERR_USAGE, "--gpus is too long");
    strcpy(list, q->a.gpus);
    char *save = NULL;
    for (char *s = strtok_r(list, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
        if (q->r.ngpu_list == TOPT_ASK_COUNTS)
            return topt_fail(err, TOPT_ERR_USAGE, "--gpus takes at most %d counts",
                             TOPT_ASK_COUNTS);
        if (topt_parse_int(s, 1, 1 << 14, &q->gpus[q->r.ngpu_list], err)) {
            if (err)
                err->code = TOPT_ERR_USAGE;
            return topt_wrap(err, "--gpus");
        }
        q->r.ngpu_list++;
    }
    q->r.gpu_list = q->gpus;
    q->r.gpus = q->gpus[0];
    return 0;
}

static int read_names(struct topt_question *q, struct topt_error *err)
{
    const struct topt_args *a = &q->a;
    struct topt_request *r = &q->r;
    if ((a->mode && topt_mode_parse(a->mode, &r->mode, err)) ||
        (a->space && topt_space_parse(a->space, &r->space, err)) ||
        (a->blocks && topt_blocks_parse(a->blocks, &r->blocks, err)) ||
        (a->factors && topt_factors_parse(a->factors, &r->factors, err)) ||
        topt_algorithm_check(a->algorithm, err) ||
        (a->dtype && topt_dtype_parse(a->dtype, &r->settings.dtype, err)) ||
        (a->accounting &&
         topt_accounting_parse(a->accounting, &r->settings.accounting, err)) ||
        (a->overlap && topt_overlap_parse(a->overlap, &r->settings.overlap, err)) ||
        (a->eager && topt_eager_parse(a->eager, &r->settings.eager, err)) ||
        (a->optimizer && topt_optimizer_parse(a->optimizer, &r->settings.optimizer, err)))
        return -1;
    r->pow2_counts = a->counts && !strcmp(a->counts, "pow2");
    if (a->counts && !r->pow2_counts && strcmp(a->counts, "all"))
        return topt_fail(err, TOPT_ERR_INVAL, "--counts is pow2 or all, not '%.40s'",
                         a->counts);
    r->micro_batches = a->micro;
    r->settings.gradient_f32 = a->gradient_f32;
    r->max_gpus = a->max_gpus;
    r->memory_limit = a->memory;
    r->algorithm = a->algorithm;
    r->epsilon = a->epsilon;
    r->max_work = a->work;
    r->max_entries = a->entries;
    r->max_table_bytes = a->table_bytes;
    r->sequence_splits = a->sequence;
    return topt_search_threads(a->threads, &r->threads, err);
}

static int load(struct topt_question *q, const char *model, struct topt_error *err)
{
    struct topt_import_options o = {
        .batch = q->a.batch, .seq = q->a.seq, .loss = q->a.loss, .train = q->a.train};
    if (!q->a.hw)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--hw is needed; `topt hw list` shows profiles");
    q->model = topt_model_load(model, &o, err);
    q->hw = q->model ? topt_hw_load(q->a.hw, err) : NULL;
    q->r.model = q->model;
    q->r.hw = q->hw;
    return q->hw ? 0 : -1;
}

int topt_ask(struct topt_question *q, const struct topt_option *table, const char *usage,
             int argc, char **argv, struct topt_error *err)
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
    if (n != 1)
        return topt_fail(err, TOPT_ERR_USAGE, "which model? usage: %.*s",
                         (int)strcspn(usage, "\n"), usage);
    if (read_counts(q, err) || read_names(q, err)) {
        if (err->code == TOPT_ERR_INVAL)
            err->code = TOPT_ERR_USAGE;
        return -1;
    }
    return load(q, model[0], err);
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

int topt_cli_width(void)
{
    struct winsize w;
    if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col >= 40)
        return w.ws_col;
    return 100;
}

int64_t topt_cli_whole(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

const char *topt_cli_words(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}
