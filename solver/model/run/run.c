/* run.c - a run that exists: which system's it is, and what its readers share. */
#include "run.h"
#include "topt_json.h"
#include "topt_run.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RUN_BYTES = 1 << 20 };

void run_degree(struct run *r, const char *key, int64_t value)
{
    topt_text_add(&r->degrees, "%s%s=%lld", r->degrees.len ? "," : "", key,
                  (long long)value);
}

void run_degree_word(struct run *r, const char *key, const char *value)
{
    topt_text_add(&r->degrees, "%s%s=%s", r->degrees.len ? "," : "", key, value);
}

void run_number(struct run *r, const char *field, int64_t value)
{
    json_object_set_new(r->fields, field, json_integer(value));
}

void run_word(struct run *r, const char *field, const char *value)
{
    json_object_set_new(r->fields, field, json_string(value));
}

void run_flag(struct run *r, const char *field)
{
    json_object_set_new(r->fields, field, json_true());
}

void run_note(struct run *r, const char *note)
{
    json_array_append_new(r->notes, json_string(note));
}

void run_batch(struct run *r, int64_t given, int64_t of_rank, int64_t ranks)
{
    if (!given && r->gpus && of_rank && ranks && r->gpus % ranks == 0)
        given = r->gpus / ranks * of_rank;
    if (given)
        run_number(r, "batch", given);
}

/* ---- arguments of a script ------------------------------------------------------------- */

/* The number of the word that is the last such argument; -1: none. */
static int find(const struct run *r, const char *name)
{
    size_t n = strlen(name);
    for (int i = r->words.nwords - 1; i >= 0; i--) {
        const char *w = r->words.word[i];
        if (!strncmp(w, name, n) && (!w[n] || w[n] == '='))
            return i;
    }
    return -1;
}

int run_has(const struct run *r, const char *name)
{
    return find(r, name) >= 0;
}

int run_text(struct run *r, const char *name, char **ret)
{
    return run_text_at(r, name, 0, ret);
}

int run_text_at(struct run *r, const char *name, int n, char **ret)
{
    int i = find(r, name);
    if (i < 0)
        return 0;
    const char *equals = strchr(r->words.word[i], '=');
    int at = i + n + !equals, is_there = at < r->words.nwords;
    const char *value = equals && !n ? equals + 1 : is_there ? r->words.word[at] : "";
    if (n && (!is_there || *value == '-'))
        return 0;
    *ret = topt_megatron_fill(&r->words, value, r->err);
    return *ret ? 1 : topt_wrap(r->err, "%s", name);
}

int run_whole(struct run *r, const char *name, int64_t least, int64_t *ret)
{
    char *value;
    int rc = run_text(r, name, &value);
    if (rc < 1)
        return rc;
    rc = topt_parse_int(value, least, 1 << 30, ret, r->err);
    free(value);
    return rc ? topt_wrap(r->err, "%s", name) : 0;
}

/* ---- numbers of GPUs --------------------------------------------------------------------- */

/* As an argument of torchrun has it; whoever starts the script may decide it, so that a value which is
 * not there is none. */
static int64_t of_launcher(struct run *r, const char *const names[2])
{
    struct topt_error unsaid = {0}, *err = r->err;
    int64_t n = 0;
    r->err = &unsaid;
    for (int i = 0; i < 2; i++)
        if (run_has(r, names[i]) && run_whole(r, names[i], 1, &n))
            n = 0;
    r->err = err;
    return n;
}

/* The number at the end of "#SBATCH --name=..."; 0: no such line. */
static int64_t of_sbatch(const struct run *r, const char *name)
{
    const char *line = r->text, *end = r->text + r->len;
    while (line && line < end) {
        size_t n = strlen(name), len = strcspn(line, "\n");
        const char *at = !strncmp(line, "#SBATCH", 7) ? strstr(line, name) : NULL;
        if (at && at < line + len && strchr("= ", at[n])) {
            const char *last = line + len;
            while (last > at + n && strchr("0123456789", last[-1]))
                last--;
            return strtoll(last, NULL, 10);
        }
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return 0;
}

static int64_t gpus_of(struct run *r)
{
    static const char *const each[] = {"--nproc_per_node", "--nproc-per-node"},
                             *const all[] = {"--nnodes", "--num_nodes"},
                             *const flags[] = {"--gpus-per-node", "--gres",
                                               "--ntasks-per-node"};
    int64_t per_node = of_launcher(r, each), nodes = of_launcher(r, all), booked;
    for (int i = 0; i < 3 && !per_node; i++)
        per_node = of_sbatch(r, flags[i]);
    booked = of_sbatch(r, "--nodes");
    if (!nodes)
        nodes = run_has(r, all[0]) || run_has(r, all[1]) || booked ? booked : 1;
    return per_node * nodes;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static int holds(const struct run *r, const char *what)
{
    return memmem(r->text, r->len, what, strlen(what)) != NULL;
}

static int read_any(struct run *r, const char *what)
{
    if (r->text[strspn(r->text, " \t\r\n")] == '{')
        return run_read_deepspeed(r);
    if (run_is_primus(r))
        return run_read_primus(r);
    if (!holds(r, "parallelism") && !holds(r, "--micro-batch-size"))
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "%s is no run: it has neither Megatron-LM's --micro-batch-size, "
                         "torchtitan's parallelism, nor is it a ds_config.json or an "
                         "experiment of Primus",
                         what);
    if (topt_megatron_split(&r->words, r->text, r->len, r->err))
        return -1;
    if (!r->gpus)
        r->gpus = gpus_of(r);
    return holds(r, "--micro-batch-size") ? run_read_megatron(r) : run_read_titan(r);
}

json_t *topt_run_read(const char *text, size_t len, const char *what, int64_t gpus,
                      struct topt_error *err)
{
    struct topt_text plain = {0}; /* ends where it says */
    topt_text_put(&plain, text, len);
    struct run r = {.text = plain.s ? plain.s : "",
                    .len = plain.s ? strlen(plain.s) : 0,
                    .gpus = gpus,
                    .fields = json_object(),
                    .notes = json_array(),
                    .err = err};
    json_t *ret = NULL;
    if (plain.oom)
        topt_nomem(err, what);
    else if (!read_any(&r, what)) {
        if (r.gpus)
            json_object_set_new(r.fields, "gpus", json_integer(r.gpus));
        run_word(&r, "degrees", r.degrees.s ? r.degrees.s : "");
        ret = json_pack("{s:O, s:O}", "fields", r.fields, "notes", r.notes);
        if (!ret)
            topt_nomem(err, what);
    }
    json_decref(r.fields);
    json_decref(r.notes);
    topt_text_fini(&r.degrees);
    topt_text_fini(&plain);
    topt_megatron_fini(&r.words);
    return ret;
}

json_t *topt_run_load(const char *path, int64_t gpus, struct topt_error *err)
{
    size_t len;
    char *text = topt_read_file(path, MAX_RUN_BYTES, &len, err);
    json_t *ret = text ? topt_run_read(text, len, path, gpus, err) : NULL;
    free(text);
    return ret;
}
