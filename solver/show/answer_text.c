/* answer_text.c - an answer as text: the question and its defaults, the alternatives side by side, the
 * reason, memory and time by part, and the next command.  Every figure is a field of the JSON answer. */
#include "topt_answer_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_json.h"
#include "topt_rates.h"
#include "topt_text.h"
#include "topt_totals.h"

/* A loss of more than a SHARE_OF_LOSS-th of the memory is remarked on. */
enum { COLUMNS = 100, INDENT = 10, NOTES = 15, SHARE_OF_LOSS = 20 };

/* ---- lines ----------------------------------------------------------------------------------- */

void topt_text_of_words(struct topt_text *out, const char *heading, const char *text)
{
    struct topt_text t = {0};
    topt_text_fold(&t, text, strlen(text), INDENT, COLUMNS);
    topt_text_add(out, "%-9s %s\n", heading, t.s ? t.s : "");
    topt_text_fini(&t);
}

/* 8.03e9 as "8.03 B"; all digits below a million.  What three digits would round up to 1,000 takes the next unit. */
static const char *parameters(int64_t n, char buf[32])
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}};
    if (n < 1000000)
        return topt_rates_grouped(n, buf);
    int i = 0;
    while (i < 2 && (double)n < 0.9995 * units[i].unit)
        i++;
    snprintf(buf, 32, "%.3g %s", (double)n / units[i].unit, units[i].name);
    return buf;
}

/* ---- the question ------------------------------------------------------------------ */

static void add_assumed(struct topt_text *t, const json_t *assumed, const char *key)
{
    size_t i;
    json_t *x;
    json_array_foreach(assumed, i, x)
    {
        const json_t *value = json_object_get(x, key);
        topt_text_add(t, "%s", i ? ", " : "");
        if (strcmp(key, "value"))
            topt_text_add(t, "%s", json_string_value(value));
        else if (json_is_integer(value))
            topt_text_add(t, "%s %lld", topt_json_words_at(x, "what"),
                          (long long)json_integer_value(value));
        else
            topt_text_add(t, "%s %s", topt_json_words_at(x, "what"),
                          json_string_value(value));
        if (!strcmp(key, "value") && json_object_get(x, "why"))
            topt_text_add(t, ": %s", topt_json_words_at(x, "why"));
    }
}

/* What the mode of a question asks for. */
static void put_mode(struct topt_text *out, const char *mode)
{
    static const char *const means[][2] = {
        {"mini-parallelism", "the fewest GPUs that fit"},
        {"mini-time", "the fastest plan on a given number of GPUs"},
        {"profiling", "speed and memory of every number of GPUs"}};
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        if (!strcmp(mode, means[i][0]))
            topt_text_add(out, "question  %s (%s)\n", means[i][1], mode);
}

void topt_text_of_question(struct topt_text *out, const json_t *answer)
{
    const json_t *job = json_object_get(answer, "job"),
                 *assumed = json_object_get(answer, "assumed");
    char n[32], batch[32], seq[32];
    int64_t positions = topt_json_whole_at(job, "seq");
    topt_text_add(out, "%s (%s parameters), %s", topt_json_words_at(job, "model"),
                  parameters(topt_json_whole_at(job, "parameters"), n),
                  topt_rates_grouped(topt_json_whole_at(job, "batch"), batch));
    if (positions > 1)
        topt_text_add(out, " x %s tokens per step", topt_rates_grouped(positions, seq));
    else
        topt_text_add(out, " samples per step");
    if (json_object_get(job, "train"))
        topt_text_add(out, ", training %s", topt_json_words_at(job, "train"));
    topt_text_add(out, ", %s, for %s on %s\n", topt_json_words_at(job, "precision"),
                  topt_json_words_at(job, "framework_title"),
                  topt_json_words_at(job, "hw"));
    struct topt_text t = {0};
    put_mode(out, topt_json_words_at(job, "mode"));
    if (!json_array_size(assumed))
        return;
    add_assumed(&t, assumed, "value");
    topt_text_add(&t, " (");
    add_assumed(&t, assumed, "option");
    topt_text_add(&t, ")");
    topt_text_of_words(out, "assumed", t.s ? t.s : "");
    topt_text_fini(&t);
}

/* ---- rows -------------------------------------------------------------------------- */

static void add_names(char *buf, size_t size, const json_t *row)
{
    size_t i, at = 0;
    json_t *x;
    buf[0] = '\0';
    json_array_foreach(json_object_get(row, "names"), i, x) at += (size_t)snprintf(
        buf + at, size - at, "%s%s", i ? ", " : "", json_string_value(x));
}

/* Write "64 (8 nodes)" and return its length. */
static int booked_words(const json_t *row, char buf[48])
{
    int64_t nodes = topt_json_whole_at(row, "nodes");
    return snprintf(buf, 48, "%lld (%lld node%s)",
                    (long long)topt_json_whole_at(row, "gpus"), (long long)nodes,
                    nodes == 1 ? "" : "s");
}

/* Widths of the columns that name a row and the GPUs that it books; 'tight': of the word beside the memory, 0:
 * no row has it. */
struct widths {
    int label, gpus, tight;
};

/* ", tight", ", does not fit", or nothing. */
static const char *beside_memory(const json_t *row)
{
    const char *verdict = topt_json_words_at(row, "verdict");
    return !strcmp(verdict, "tight")          ? ", tight"
           : !strcmp(verdict, "does not fit") ? ", does not fit"
                                              : "";
}

enum { LABEL = 128 };

static void label_words(const json_t *row, enum topt_rows_by by, char buf[LABEL])
{
    size_t n = 0;
    if (by == TOPT_ROWS_BY_BATCH) {
        topt_rates_grouped(topt_json_whole_at(row, "batch"), buf);
        return;
    }
    if (by == TOPT_ROWS_BY_HW)
        n = (size_t)snprintf(buf, LABEL, "%.79s%s", topt_json_words_at(row, "hw"),
                             json_object_get(row, "names") ? ", " : "");
    add_names(buf + n, LABEL - n, row);
}

static struct widths widths_of(const json_t *rows, enum topt_rows_by by)
{
    struct widths w = {14, 14, 0};
    char buf[LABEL];
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        int gpus = booked_words(row, buf);
        label_words(row, by, buf);
        int label = (int)strlen(buf);
        w.gpus = gpus > w.gpus ? gpus : w.gpus;
        w.label = label > w.label ? label : w.label;
        int tight = (int)strlen(beside_memory(row));
        w.tight = tight > w.tight ? tight : w.tight;
    }
    return w;
}

static int any_tight(const json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        if (!strcmp(topt_json_words_at(row, "verdict"), "tight"))
            return 1;
    }
    return 0;
}

/* Does a row have this name? */
static int any_named(const json_t *rows, const char *name)
{
    size_t i, k;
    json_t *row, *x;
    json_array_foreach(rows, i, row)
    {
        json_array_foreach(json_object_get(row, "names"), k, x)
        {
            if (!strcmp(json_string_value(x), name))
                return 1;
        }
    }
    return 0;
}

static void show_row(struct topt_text *out, const json_t *row, const json_t *rows,
                     const json_t *training, enum topt_rows_by by, struct widths w)
{
    char label[LABEL], a[32], b[32], c[32], e[32], each[32], mfu[16] = "-", gpus[48];
    double tokens = topt_json_number_at(row, "tokens_per_second");
    double rate = tokens > 0 ? tokens : topt_json_number_at(row, "samples_per_second");
    double each_s = rate / topt_json_number_at(row, "gpus"); /* of a GPU */
    label_words(row, by, label);
    if (!json_is_true(json_object_get(row, "feasible")) && by != TOPT_ROWS_BY_NAME) {
        topt_text_add(out, "%-*s %s\n", w.label, label, topt_json_words_at(row, "why"));
        return;
    }
    booked_words(row, gpus);
    if (json_object_get(row, "mfu"))
        snprintf(mfu, sizeof mfu, "%.1f %%", 100 * topt_json_number_at(row, "mfu"));
    topt_text_add(out, "%-*s %-*s %8s %10s %10s %7s", w.label, label, w.gpus, gpus,
                  topt_show_ns(topt_json_whole_at(row, "time_ns"), a, sizeof a),
                  topt_rates_number(rate, b), topt_rates_number(each_s, each), mfu);
    if (training)
        topt_totals_cells(out, row, rows, training);
    else
        topt_text_add(out, " %8s",
                      topt_rates_number((tokens > 0 ? 1e9 : 1e6) / each_s / 3600, c));
    topt_text_add(out, " %10s%-*s  %s\n",
                  topt_show_bytes(topt_json_whole_at(row, "memory_bytes"), e, sizeof e),
                  w.tight, beside_memory(row), topt_json_words_at(row, "strategy"));
}

/* Is the last row, unlike the first, from the uniform space? */
static int of_two_spaces(const json_t *rows)
{
    const char *first =
        json_string_value(json_object_get(json_array_get(rows, 0), "space"));
    const char *last = json_string_value(
        json_object_get(json_array_get(rows, json_array_size(rows) - 1), "space"));
    return first && last && strcmp(first, "uniform") && !strcmp(last, "uniform");
}

/* What the short words in the heads of columns stand for. */
static void explain_heads(struct topt_text *out, const json_t *job, int tokens, int mfu)
{
    const json_t *training = json_object_get(job, "training");
    if (training && !mfu)
        return;
    topt_text_add(out, "%*s(", NOTES, "");
    if (!training)
        topt_text_add(out, "GPU-h/1%s: GPU-hours per %s %s%s", tokens ? "B" : "M",
                      tokens ? "billion" : "million",
                      tokens ? "tokens" : topt_rates_samples(job), mfu ? "; " : "");
    topt_text_add(out, "%s)\n",
                  !mfu ? ""
                  : topt_rates_mask_tells(job)
                      ? "MFU: model FLOPs utilization, with the masked part of attention"
                      : "MFU: model FLOPs utilization");
}

void topt_text_of_rows(struct topt_text *out, const json_t *rows, const json_t *job,
                       enum topt_rows_by by)
{
    const json_t *training = json_object_get(job, "training");
    size_t i;
    json_t *row;
    int tokens = 0, mfu = 0;
    char rate[32];
    json_array_foreach(rows, i, row)
    {
        tokens |= json_object_get(row, "tokens_per_second") != NULL;
        mfu |= json_object_get(row, "mfu") != NULL;
    }
    struct widths w = widths_of(rows, by);
    snprintf(rate, sizeof rate, "%s/s", tokens ? "tokens" : topt_rates_samples(job));
    topt_text_add(out, "\n%-*s %-*s %8s %10s %10s %7s", w.label,
                  by == TOPT_ROWS_BY_BATCH ? "batch"
                  : by == TOPT_ROWS_BY_HW  ? "hardware"
                                           : "",
                  w.gpus, "GPUs", "step", rate, "per GPU", "MFU");
    if (training)
        topt_totals_heads(out, rows, training);
    else
        topt_text_add(out, " %8s", tokens ? "GPU-h/1B" : "GPU-h/1M");
    topt_text_add(out, " %10s%*s  strategy\n", "memory", w.tight, "");
    json_array_foreach(rows, i, row) show_row(out, row, rows, training, by, w);
    topt_text_add(
        out, "%*s(step and memory are predictions; --json has the band of each row)\n",
        NOTES, "");
    if (any_named(rows, "knee"))
        topt_text_add(out,
                      "%*s(knee: beyond it each GPU adds less than half of the best "
                      "speed per GPU)\n",
                      NOTES, "");
    if (w.tight && any_tight(rows))
        topt_text_add(
            out,
            "%*s(tight: with context and libraries a run may take more than the limit)\n",
            NOTES, "");
    explain_heads(out, job, tokens, mfu);
    if (by == TOPT_ROWS_BY_NAME && of_two_spaces(rows))
        topt_text_add(out,
                      "%*s(below the first row, all layers share one strategy; --gpus "
                      "N may find a faster plan)\n",
                      NOTES, "");
    topt_text_add(out, "\n");
}

void topt_text_of_gpus(struct topt_text *out, int64_t gpus, int64_t nodes, int64_t each)
{
    topt_text_add(out, "%lld GPU%s", (long long)gpus, gpus > 1 ? "s" : "");
    if (gpus > 1)
        topt_text_add(out, " (%lld node%s x %lld GPU%s)", (long long)nodes,
                      nodes > 1 ? "s" : "", (long long)each, each > 1 ? "s" : "");
}

/* ---- the choice -------------------------------------------------------------------- */

const char *topt_part_words(const char *part)
{
    static const char *const words[][2] = {
        {"optimizer", "optimizer state + master weights"},
        {"data", "samples"},
        {"buffers", "communication buffers"},
        {"activations", "activations saved for backward"},
        {"recomputed", "recomputed activations"},
        {"transient", "temporary buffers of an operator"},
        {"loss", "logits and their gradient (loss)"},
        {"waiting", "activations between operators"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i][0], part))
            return words[i][1];
    return part;
}

void topt_memory_words(struct topt_text *out, const json_t *numbers)
{
    char x[32], y[32], z[32];
    if (numbers)
        topt_text_add(
            out,
            "  allocated %s (max_memory_allocated), reserved %s (max_memory_reserved), "
            "process about %s (nvidia-smi)\n",
            topt_show_bytes(topt_json_whole_at(numbers, "allocated_bytes"), x, sizeof x),
            topt_show_bytes(topt_json_whole_at(numbers, "reserved_bytes"), y, sizeof y),
            topt_show_bytes(topt_json_whole_at(numbers, "process_bytes"), z, sizeof z));
}

/* List the parts of memory that are at least 1 MiB. */
static void show_parts(struct topt_text *out, const json_t *parts)
{
    char x[32];
    const char *key;
    json_t *value;
    struct topt_text t = {0};
    json_object_foreach((json_t *)parts, key, value)
    {
        if (strcmp(key, "reserve") && json_integer_value(value) >> 20)
            topt_text_add(&t, "%s%s %s", t.len ? ", " : "", topt_part_words(key),
                          topt_show_bytes(json_integer_value(value), x, sizeof x));
    }
    if (t.s)
        topt_text_of_words(out, "", t.s);
    topt_text_fini(&t);
}

char *topt_text_of_peak(const json_t *parts)
{
    struct topt_text t = {0};
    const json_t *gradients = json_object_get(parts, "gradients");
    int64_t loss = topt_json_whole_at(parts, "loss"), all = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)parts, key, value) all +=
        strcmp(key, "reserve") ? json_integer_value(value) : 0;
    if (gradients && !json_integer_value(gradients))
        topt_text_add(&t, "gradients are not in it: backward makes them after the peak");
    if (SHARE_OF_LOSS * loss > all)
        topt_text_add(&t,
                      "%sthe peak is at the loss: a fused or chunked loss, which never "
                      "holds all logits, needs less",
                      t.len ? "; " : "");
    return topt_text_take(&t);
}

char *topt_text_of_memory_band(const json_t *band, const char *verdict)
{
    const json_t *memory = json_object_get(band, "memory");
    struct topt_text t = {0};
    char x[32], y[32];
    if (!memory)
        return NULL;
    topt_text_add(&t, "with context and libraries a run takes %s",
                  topt_show_bytes(topt_json_whole_at(memory, "low_bytes"), x, sizeof x));
    if (strcmp(x, topt_show_bytes(topt_json_whole_at(memory, "high_bytes"), y, sizeof y)))
        topt_text_add(&t, " to %s", y);
    if (!strcmp(verdict, "tight"))
        topt_text_add(&t, ", which may be more than there is; gaps are fewer with "
                          "expandable segments, which topt launch sets, and a smaller "
                          "--memory asks for a plan with more room");
    return topt_text_take(&t);
}

/* What each pipeline stage holds; of many the most and the least. */
static void show_stages(struct topt_text *out, const json_t *stages)
{
    enum { MANY = 16 };
    struct topt_text t = {0};
    size_t i, most = 0, least = 0, n = json_array_size(stages);
    json_t *x;
    char buf[32];
    topt_text_add(&t, "by stage ");
    json_array_foreach(stages, i, x)
    {
        int64_t bytes = topt_json_whole_at(x, "memory_bytes");
        if (n <= MANY)
            topt_text_add(&t, "%s%s", i ? ", " : "",
                          topt_show_bytes(bytes, buf, sizeof buf));
        if (bytes > topt_json_whole_at(json_array_get(stages, most), "memory_bytes"))
            most = i;
        if (bytes < topt_json_whole_at(json_array_get(stages, least), "memory_bytes"))
            least = i;
    }
    if (n > MANY) {
        topt_show_bytes(topt_json_whole_at(json_array_get(stages, least), "memory_bytes"),
                        buf, sizeof buf);
        topt_text_add(&t, "from %s (stage %zu) to ", buf, least);
        topt_show_bytes(topt_json_whole_at(json_array_get(stages, most), "memory_bytes"),
                        buf, sizeof buf);
        topt_text_add(&t, "%s (stage %zu)", buf, most);
    }
    if (n)
        topt_text_of_words(out, "", t.s ? t.s : "");
    topt_text_fini(&t);
}

char *topt_text_of_host(const json_t *host)
{
    struct topt_text t = {0};
    char x[32], y[32];
    size_t i;
    json_t *what;
    if (!host)
        return NULL;
    int64_t ns = topt_json_whole_at(host, "wait_ns");
    topt_text_add(
        &t, "%s of a node's %s (its GPUs' share):",
        topt_show_bytes(topt_json_whole_at(host, "bytes_per_node"), x, sizeof x),
        topt_show_bytes(topt_json_whole_at(host, "limit_bytes_per_node"), y, sizeof y));
    json_array_foreach(json_object_get(host, "what"), i, what)
        topt_text_add(&t, "%s %s", i ? "," : "", json_string_value(what));
    topt_text_add(&t, ns ? "; a step takes %s longer" : "; no step takes longer",
                  topt_show_ns(ns, x, sizeof x));
    ns = topt_json_whole_at(host, "update_ns");
    if (ns)
        topt_text_add(&t, ", and the host's optimizer works for %s",
                      topt_show_ns(ns, x, sizeof x));
    return topt_text_take(&t);
}

static void show_memory(struct topt_text *out, const json_t *a)
{
    char x[32], y[32];
    const json_t *parts = json_object_get(a, "memory_parts");
    const char *verdict = topt_json_words_at(a, "verdict");
    char *peak = topt_text_of_peak(parts);
    char *band = topt_text_of_memory_band(json_object_get(a, "band"), verdict);
    topt_text_add(out, "memory    %s per GPU at the peak, of %s usable%s%s\n",
                  topt_show_bytes(topt_json_whole_at(a, "memory_bytes"), x, sizeof x),
                  topt_show_bytes(topt_json_whole_at(a, "memory_limit"), y, sizeof y),
                  *verdict ? ": " : "", verdict);
    show_parts(out, parts);
    show_stages(out, json_object_get(a, "stages"));
    if (peak)
        topt_text_of_words(out, "", peak);
    if (band)
        topt_text_of_words(out, "", band);
    char *host = topt_text_of_host(json_object_get(a, "host"));
    if (host)
        topt_text_of_words(out, "host", host);
    free(host);
    free(peak);
    free(band);
}

static void show_rates(struct topt_text *out, const json_t *a)
{
    struct topt_text t = {0};
    topt_rates_text(&t, a, json_object_get(a, "job"));
    if (t.s)
        topt_text_add(out, "          %s\n", t.s);
    topt_text_fini(&t);
}

/* "-5 % to +24 %: 60 % from data sheets, 40 % published rates", by what the time rests on. */
static void show_band(struct topt_text *out, const json_t *band, double all)
{
    static const char *const words[][2] = {{"analytic", "from data sheets"},
                                           {"published", "published rates"},
                                           {"scaled", "scaled from other groups"},
                                           {"interpolated", "interpolated"},
                                           {"measured", "measured"}};
    topt_text_add(out, "          -%.0f %% to +%.0f %%",
                  100 * (1 - topt_json_number_at(band, "low_ns") / all),
                  100 * (topt_json_number_at(band, "high_ns") / all - 1));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        double share =
            topt_json_number_at(json_object_get(band, "rests_on_ns"), words[i][0]) / all;
        if (!i || share >= 0.005)
            topt_text_add(out, "%s %.0f %% %s", i ? "," : ":", 100 * share, words[i][1]);
    }
    const char *unseen = json_string_value(json_object_get(band, "unseen"));
    topt_text_add(out, "%s%s\n", unseen ? ", " : "", unseen ? unseen : "");
}

static void show_training(struct topt_text *out, const json_t *a)
{
    struct topt_text t = {0};
    topt_totals_text(&t, a, json_object_get(a, "job"));
    if (t.s)
        topt_text_of_words(out, "training", t.s);
    topt_text_fini(&t);
}

/* Write the time of a step, its rates, its error band and what the estimate rests on. */
static void show_time(struct topt_text *out, const json_t *a)
{
    char x[32], y[32], z[32], w[32];
    const json_t *band = json_object_get(json_object_get(a, "band"), "time"),
                 *rests = json_object_get(band, "rests_on_ns");
    double all =
        topt_json_number_at(a, "time_ns") > 0 ? topt_json_number_at(a, "time_ns") : 1;
    topt_text_add(out, "time      %s per step: ",
                  topt_show_ns(topt_json_whole_at(a, "time_ns"), x, sizeof x));
    int64_t host = topt_json_whole_at(json_object_get(a, "host"), "wait_ns");
    int64_t network = topt_json_whole_at(a, "network_ns");
    if (network || host)
        topt_text_add(out, "%s compute",
                      topt_show_ns(topt_json_whole_at(a, "compute_ns"), y, sizeof y));
    else
        topt_text_add(out, "all compute");
    if (network)
        topt_text_add(out, ", %s exposed communication",
                      topt_show_ns(network, z, sizeof z));
    if (host)
        topt_text_add(out, ", %s waiting for the host", topt_show_ns(host, w, sizeof w));
    topt_text_add(out, "\n");
    if (topt_json_whole_at(a, "idle_ns"))
        topt_text_add(
            out, "          %s bubble of the pipeline, and waiting for other stages\n",
            topt_show_ns(topt_json_whole_at(a, "idle_ns"), y, sizeof y));
    if (2 * topt_json_whole_at(a, "network_ns") > topt_json_whole_at(a, "time_ns"))
        topt_text_add(out,
                      "          most of the step is communication: the plan fits, and "
                      "wastes its GPUs\n");
    show_rates(out, a);
    show_band(out, band, all);
    if (topt_json_number_at(rests, "measured") +
            topt_json_number_at(rests, "interpolated") <
        all / 2)
        topt_text_add(out,
                      "          `topt profile` on the cluster narrows this range\n");
    if (json_object_get(a, "simulated_ns"))
        topt_text_add(out,
                      "          %s when the whole step is simulated (topt simulate)\n",
                      topt_show_ns(topt_json_whole_at(a, "simulated_ns"), x, sizeof x));
}

static void show_search(struct topt_text *out, const json_t *a)
{
    if (!strcmp(topt_json_words_at(a, "space"), "uniform"))
        return;
    topt_text_add(
        out, "space     %s, %s; %lld configurations, %lld layouts, %lld edge entries\n",
        topt_json_words_at(a, "space"),
        json_is_true(json_object_get(a, "exact")) ? "exact" : "not exact",
        (long long)topt_json_whole_at(a, "configs"),
        (long long)topt_json_whole_at(a, "layouts"),
        (long long)topt_json_whole_at(a, "edge_entries"));
}

/* List options with which fewer GPUs would be enough. */
static void show_with(struct topt_text *out, const json_t *a)
{
    size_t i;
    json_t *x;
    json_array_foreach(json_object_get(a, "with"), i, x)
    {
        long long n = topt_json_whole_at(x, "gpus");
        char need[32];
        topt_text_add(
            out, "%-9s %s: fits on %lld GPU%s, %s per GPU\n", i ? "" : "or with",
            topt_json_words_at(x, "ask"), n, n == 1 ? "" : "s",
            topt_show_bytes(topt_json_whole_at(x, "memory_bytes"), need, sizeof need));
    }
}

static void show_next(struct topt_text *out, const json_t *a, const char *path)
{
    const char *id = topt_json_words_at(a, "plan_id");
    topt_text_add(out, "plan      %s", id);
    if (path)
        topt_text_add(out, ", written to %s; next: topt explain %s", path, path);
    else
        topt_text_add(out, "; add -o plan.json to write it, then topt explain plan.json, "
                           "topt launch plan.json");
    topt_text_add(out, "\n");
}

static void put_cost(struct topt_text *t, const json_t *without, int64_t time_ns,
                     int64_t memory_bytes)
{
    int64_t ns = topt_json_whole_at(without, "time_ns"),
            bytes = topt_json_whole_at(without, "memory_bytes");
    int64_t later = time_ns - ns, more = memory_bytes - bytes;
    char a[32], b[32];
    topt_text_add(t, "without it, a step takes %s", topt_show_ns(ns, a, sizeof a));
    if (later)
        topt_text_add(t, ", %s %s (%.1f %%)",
                      topt_show_ns(later > 0 ? later : -later, a, sizeof a),
                      later > 0 ? "less" : "more",
                      100.0 * (double)(later > 0 ? later : -later) / (double)time_ns);
    else
        topt_text_add(t, ", the same time");
    topt_text_add(t, ", with %s per GPU", topt_show_bytes(bytes, a, sizeof a));
    if (more)
        topt_text_add(t, ", %s %s", topt_show_bytes(more > 0 ? more : -more, b, sizeof b),
                      more > 0 ? "less" : "more");
}

char *topt_pins_words(const json_t *pins, int64_t time_ns, int64_t memory_bytes)
{
    struct topt_text t = {0};
    const json_t *without = json_object_get(pins, "without");
    int64_t n = topt_json_whole_at(pins, "operators");
    topt_text_add(&t, "%s (%lld operator%s); ",
                  json_string_value(json_object_get(pins, "text")), (long long)n,
                  n == 1 ? "" : "s");
    if (json_is_object(without))
        put_cost(&t, without, time_ns, memory_bytes);
    else
        topt_text_add(&t, "its cost was not computed");
    return topt_text_take(&t);
}

static void show_pins(struct topt_text *out, const json_t *a)
{
    const json_t *pins = json_object_get(a, "pins");
    char *text = pins ? topt_pins_words(pins, topt_json_whole_at(a, "time_ns"),
                                        topt_json_whole_at(a, "memory_bytes"))
                      : NULL;
    if (text)
        topt_text_of_words(out, "pinned", text);
    free(text);
}

static void show_left_out(struct topt_text *out, const json_t *a)
{
    if (json_object_get(a, "left_out"))
        topt_text_of_words(out, "left out", topt_json_words_at(a, "left_out"));
}

void topt_text_of_lacks(struct topt_text *out, const json_t *a)
{
    const json_t *job = json_object_get(a, "job"), *of = job ? job : a;
    if (json_object_get(of, "not_searched"))
        topt_text_of_words(out, "not tried", topt_json_words_at(of, "not_searched"));
}

static void show_infeasible(struct topt_text *out, const json_t *a)
{
    const json_t *near = json_object_get(a, "nearest");
    char x[32];
    topt_text_add(out, "\n%s\n",
                  json_is_null(json_object_get(a, "feasible")) ? "undecided"
                  : near                                       ? "does not fit"
                                                               : "no plan");
    topt_text_of_words(out, "why", topt_json_words_at(a, "why"));

    topt_show_bytes(topt_json_whole_at(near, "memory_bytes"), x, sizeof x);
    if (near && !strstr(topt_json_words_at(a, "why"), x))
        topt_text_add(out,
                      topt_json_whole_at(near, "gpus") == 1
                          ? "nearest   %lld GPU, needing %s\n"
                          : "nearest   %lld GPUs, needing %s each\n",
                      (long long)topt_json_whole_at(near, "gpus"), x);
    show_with(out, a);
    if (near && !json_array_size(json_object_get(a, "with")))
        topt_text_of_words(out, "next",
                           "a shorter --seq, fewer trained parameters (--train), GPUs "
                           "with more memory (topt hw list), or another --framework");
    show_left_out(out, a);
    topt_text_of_lacks(out, a);
}

/* A run that exists and the plan, side by side. */
static void show_as_is(struct topt_text *out, const json_t *a)
{
    const json_t *run = json_object_get(a, "as_is");
    char more[96] = "";
    size_t i;
    json_t *note;
    if (!run)
        return;
    int64_t own = topt_json_whole_at(a, "time_ns");
    double times = (double)topt_json_whole_at(run, "time_ns") / (double)(own ? own : 1);
    json_t *yours = json_copy((json_t *)run), *ours = json_copy((json_t *)a);
    json_object_set_new(yours, "names", json_pack("[s]", "yours"));
    json_object_set_new(ours, "names", json_pack("[s]", "topt's"));
    json_t *rows = own ? json_pack("[O, O]", yours, ours) : json_pack("[O]", yours);
    topt_text_of_rows(out, rows, json_object_get(a, "job"), 0);
    json_decref(yours);
    json_decref(ours);
    json_decref(rows);
    if (own && times >= 1.005)
        snprintf(more, sizeof more, "topt's plan is %.3g times as fast", times);
    else if (own) {
        const char *but = strcmp(topt_json_words_at(run, "verdict"), "does not fit")
                              ? ""
                              : ", but does not fit";
        if (times > 0 && times <= 0.995)
            snprintf(more, sizeof more, "yours is %.3g times as fast as topt's plan%s",
                     1 / times, but);
        else
            snprintf(more, sizeof more, "yours is as fast as topt's plan%s", but);
    }
    if (*more)
        topt_text_of_words(out, "compared", more);
    const char *options = topt_json_words_at(run, "options");
    topt_text_add(out, "yours is  --degrees %s%s%s\n", topt_json_words_at(run, "degrees"),
                  *options ? " " : "", options);
    json_array_foreach(json_object_get(run, "notes"), i, note)
        topt_text_of_words(out, i ? "" : "taken", json_string_value(note));
}

/* Shows how the planned model differs from the imported file. */
static void show_note(struct topt_text *out, const json_t *a)
{
    const char *note = topt_json_words_at(json_object_get(a, "job"), "note");
    if (*note)
        topt_text_of_words(out, "note", note);
}

void topt_text_of_plan(struct topt_text *out, const json_t *a, const char *path)
{
    const json_t *rows = json_object_get(a, "alternatives");
    topt_text_of_question(out, a);
    if (!json_is_true(json_object_get(a, "feasible"))) {
        show_as_is(out, a);
        show_infeasible(out, a);
        show_note(out, a);
        return;
    }
    if (json_array_size(rows))
        topt_text_of_rows(out, rows, json_object_get(a, "job"), 0);
    show_as_is(out, a);
    int64_t gpus = topt_json_whole_at(a, "gpus"), nodes = topt_json_whole_at(a, "nodes"),
            each = topt_json_whole_at(a, "gpus_per_node");
    if (!json_array_size(rows))
        topt_text_add(out, "\n");
    topt_text_of_gpus(out, gpus, nodes, each);
    topt_text_add(out, ": %s\n", topt_json_words_at(a, "strategy"));
    topt_text_of_words(out, "why", topt_json_words_at(a, "why"));
    show_with(out, a);
    if (json_object_get(a, "needs"))
        topt_text_of_words(out, "needs", topt_json_words_at(a, "needs"));
    show_memory(out, a);
    show_time(out, a);
    show_training(out, a);
    show_pins(out, a);
    show_search(out, a);
    show_left_out(out, a);
    topt_text_of_lacks(out, a);
    topt_text_of_claim(out, a);
    show_next(out, a, path);
    show_note(out, a);
}

/* ---- claims and notes -------------------------------------------------------------- */

char *topt_stopped_words(const json_t *a)
{
    const json_t *after = json_object_get(a, "stopped_after_s");
    struct topt_text t = {0};
    if (!json_is_true(json_object_get(a, "stopped")))
        return NULL;
    if (after)
        topt_text_add(&t, "after %.4g s (raise with --seconds N, or --seconds none)",
                      json_number_value(after));
    else if (json_object_get(a, "stopped_after_work"))
        topt_text_add(
            &t, "after %.3g pairs of points (raise with --max-work N or --seconds S)",
            json_number_value(json_object_get(a, "stopped_after_work")));
    else if (json_object_get(a, "too_large"))
        topt_text_add(&t, "because the space is too large (%s)",
                      json_string_value(json_object_get(a, "too_large")));
    else
        topt_text_add(&t, "before the search was finished");
    if (json_object_get(a, "found_in"))
        topt_text_add(&t, "; found in the %s space",
                      json_string_value(json_object_get(a, "found_in")));
    return topt_text_take(&t);
}

void topt_text_of_claim(struct topt_text *out, const json_t *a)
{
    enum { SHOWN = 6 };
    const json_t *epsilon = json_object_get(a, "epsilon"),
                 *decided = json_object_get(a, "heuristic"),
                 *ends = json_object_get(a, "ends");
    char *stopped = topt_stopped_words(a);
    if (stopped)
        topt_text_add(out, "stopped   %s; this is the best plan so far\n", stopped);
    free(stopped);
    if (json_is_null(epsilon) &&
        topt_json_whole_at(json_object_get(a, "uniform"), "pp") > 1)
        topt_text_add(out,
                      "proven    nothing: only the fastest and the lightest strategy of "
                      "each pipeline stage are tried\n");
    else if (json_is_null(epsilon))
        topt_text_add(out, "proven    %s: faster strategies may exist\n",
                      json_is_true(json_object_get(ends, "least")) ? "the least memory"
                                                                   : "nothing");
    else if (json_number_value(epsilon) > 0)
        topt_text_add(out, "proven    within %.3g %% of the fastest strategy\n",
                      100 * json_number_value(epsilon));
    else if (json_is_true(json_object_get(a, "stopped")))
        topt_text_add(out, "proven    no strategy is faster%s\n",
                      decided ? ", given the operators fixed by heuristic" : "");
    size_t n = json_array_size(decided);
    for (size_t i = 0; i < n && i < SHOWN; i++)
        topt_text_add(out, "%s%s", i ? ", " : "heuristic fixed these operators: ",
                      json_string_value(json_array_get(decided, i)));
    if (n > SHOWN)
        topt_text_add(out, " and %zu more", n - SHOWN);
    if (n > 0)
        topt_text_add(out, "\n");
}

void topt_text_of_search(struct topt_text *out, const json_t *doc)
{
    enum { SHOWN = 12 };
    const json_t *epsilon = json_object_get(doc, "epsilon");
    const json_t *decided = json_object_get(doc, "heuristic");
    size_t i, n = json_array_size(decided);
    json_t *name;
    topt_text_add(out, "Search: %s space, ", topt_json_words_at(doc, "space"));
    if (json_is_true(json_object_get(doc, "exact")))
        topt_text_add(out, "solved exactly: no strategy in it is faster.\n");
    else if (json_is_number(epsilon) && json_number_value(epsilon) > 0)
        topt_text_add(out, "proven within %.3g %% of the fastest strategy in it.\n",
                      100 * json_number_value(epsilon));
    else if (n > 0)
        topt_text_add(out, "the fastest found with some operators fixed by heuristic.\n");
    else
        topt_text_add(out, "without a proven bound.\n");
    if (n > 0)
        topt_text_add(out, "Fixed by heuristic: ");
    json_array_foreach(decided, i, name)
    {
        if (i < SHOWN)
            topt_text_add(out, "%s%s", i ? ", " : "", json_string_value(name));
    }
    if (n > 0)
        topt_text_add(out, n > SHOWN ? " and %zu more.\n" : ".\n", n - SHOWN);
}
