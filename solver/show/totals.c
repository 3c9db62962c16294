/* totals.c - see topt_totals.h. */
#include "topt_totals.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "topt_json.h"
#include "topt_rates.h"

static const double DAY = 24, DAYS_FROM = 48; /* hours */

int topt_totals_read(const struct topt_query *asked, struct topt_totals *ret,
                     const char **ret_field, struct topt_error *err)
{
    *ret = (struct topt_totals){asked->tokens, asked->samples, asked->price,
                                asked->currency};
    *ret_field = asked->price > 0 ? "price" : "samples";
    if (asked->tokens && asked->samples)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--tokens and --samples both say how long a training is; give "
                         "one of them");
    if (asked->price > 0 && !asked->tokens && !asked->samples)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--price gives the cost of a whole training; say how long it "
                         "is, with --tokens 1T or --samples 300M");
    return 0;
}

int topt_totals_check(const struct topt_totals *t, int64_t seq, struct topt_error *err)
{
    if (!t->tokens || seq > 1)
        return 0;
    return topt_fail(err, TOPT_ERR_USAGE,
                     "--tokens: this model's samples are no sequences of tokens; give "
                     "--samples");
}

static json_t *training_json(const struct topt_totals *t, double seq)
{
    json_t *x = json_object();
    double samples = t->samples ? (double)t->samples : (double)t->tokens / seq;
    if (t->tokens)
        json_object_set_new(x, "tokens", json_integer(t->tokens));
    json_object_set_new(x, "samples", json_real(samples));
    if (t->price > 0)
        json_object_set_new(x, "price", json_real(t->price));
    if (*t->currency)
        json_object_set_new(x, "currency", json_string(t->currency));
    return x;
}

void topt_totals_put_row(json_t *row, const json_t *training, double batch, double gpus)
{
    double step_hours = topt_json_number_at(row, "time_ns") / 3600e9,
           price = topt_json_number_at(training, "price");
    if (!training || step_hours <= 0 || batch <= 0 || gpus <= 0)
        return;
    double hours = ceil(topt_json_number_at(training, "samples") / batch) * step_hours;
    json_object_set_new(row, "training_hours", json_real(hours));
    json_object_set_new(row, "training_gpu_hours", json_real(hours * gpus));
    if (price > 0)
        json_object_set_new(row, "training_cost", json_real(hours * gpus * price));
}

void topt_totals_put(json_t *doc, const struct topt_totals *t)
{
    double seq = topt_json_number_at(doc, "seq"),
           batch = topt_json_number_at(doc, "batch");
    const json_t *points = json_object_get(doc, "points");
    size_t i;
    json_t *row;
    if (!t->tokens && !t->samples)
        return;
    json_t *training = training_json(t, seq);
    json_object_set_new(doc, "training", training);
    json_array_foreach(points ? points : json_object_get(doc, "systems"), i, row)
    {
        double own = topt_json_number_at(row, "gpus");
        topt_totals_put_row(row, training, batch,
                            own > 0 ? own : topt_json_number_at(doc, "gpus"));
    }
}

/* ---- words --------------------------------------------------------------------------- */

/* 1.5e12 as "1.5T". */
static const char *amount(double x, char buf[32])
{
    static const char *const unit[] = {"", "K", "M", "B", "T"};
    int i = 0;
    for (; i < 4 && x >= 1000; i++)
        x /= 1000;
    snprintf(buf, 32, "%.4g%s", x, unit[i]);
    return buf;
}

static const char *duration(double hours, char buf[32])
{
    char n[32];
    snprintf(buf, 32, "%.20s %s",
             topt_rates_number(hours < DAYS_FROM ? hours : hours / DAY, n),
             hours < DAYS_FROM ? "hours" : "days");
    return buf;
}

/* A sum of money, whole from 100 on. */
static const char *money(double x, char buf[32])
{
    if (x >= 1000)
        return topt_rates_number(x, buf);
    snprintf(buf, 32, x >= 100 ? "%.0f" : "%.2f", x);
    return buf;
}

void topt_totals_words(struct topt_text *out, const json_t *row, const json_t *training)
{
    char a[32], b[32];
    const char *currency = topt_json_words_at(training, "currency");
    topt_text_add(out, "%s, %s GPU-hours",
                  duration(topt_json_number_at(row, "training_hours"), a),
                  topt_rates_number(topt_json_number_at(row, "training_gpu_hours"), b));
    if (json_object_get(row, "training_cost"))
        topt_text_add(out, ", %s%s%s%s", *currency ? "" : "cost ",
                      money(topt_json_number_at(row, "training_cost"), a),
                      *currency ? " " : "", currency);
}

void topt_totals_text(struct topt_text *out, const json_t *row, const json_t *job)
{
    const json_t *training = json_object_get(job, "training");
    char a[32];
    const json_t *tokens = json_object_get(training, "tokens");
    if (topt_json_number_at(row, "training_hours") <= 0)
        return;
    topt_text_add(out, "%s %s: ",
                  amount(tokens ? json_number_value(tokens)
                                : topt_json_number_at(training, "samples"),
                         a),
                  tokens ? "tokens" : topt_rates_samples(job));
    topt_totals_words(out, row, training);
    if (json_object_get(training, "price"))
        topt_text_add(out, " at %.6g a GPU-hour", topt_json_number_at(training, "price"));
}

/* Is any row longer than two days? */
static int in_days(const json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        if (topt_json_number_at(row, "training_hours") >= DAYS_FROM)
            return 1;
    }
    return 0;
}

void topt_totals_heads(struct topt_text *out, const json_t *rows, const json_t *training)
{
    if (!training)
        return;
    topt_text_add(out, " %8s %10s", in_days(rows) ? "days" : "hours", "GPU-hours");
    if (json_object_get(training, "price"))
        topt_text_add(out, " %11s",
                      json_object_get(training, "currency")
                          ? topt_json_words_at(training, "currency")
                          : "cost");
}

void topt_totals_cells(struct topt_text *out, const json_t *row, const json_t *rows,
                       const json_t *training)
{
    char a[32], b[32], c[32];
    double hours = topt_json_number_at(row, "training_hours");
    if (!training || hours <= 0)
        return;
    topt_text_add(out, " %8s %10s",
                  topt_rates_number(in_days(rows) ? hours / DAY : hours, a),
                  topt_rates_number(topt_json_number_at(row, "training_gpu_hours"), b));
    if (json_object_get(training, "price"))
        topt_text_add(out, " %11s", money(topt_json_number_at(row, "training_cost"), c));
}
