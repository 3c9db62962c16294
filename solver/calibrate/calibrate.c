/* calibrate.c - what a calibration found: errors before and after, of steps that were left out too, each
 * factor with its bounds and its support, and the profile that says how it was made. */
#include "calibrate_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topt_array.h"
#include "topt_json.h"
#include "topt_text.h"

/* ---- computing ------------------------------------------------------------------------ */

struct work {
    const struct topt_reports *r;
    json_t *profile;
    struct fit all;
    struct memory_fit memory;
    double *before, *after, *left_out, *each; /* nanoseconds by report */
    double least[FACTORS], most[FACTORS];     /* of factors, over the reports left out */
};

static double mean_error(const struct work *w, const double *ns)
{
    double sum = 0;
    for (int i = 0; i < w->r->n; i++)
        sum += fabs(ns[i] / w->r->at[i].step_ns - 1);
    return sum / w->r->n;
}

/* Each report predicted by factors that were fitted to the others. */
static int leave_out(struct work *w, struct topt_error *err)
{
    for (int i = 0; i < w->r->n; i++) {
        struct fit others;
        if (fit_factors(w->profile, w->r, i, &others, err) ||
            predict(w->profile, w->r, others.value, w->each, err))
            return -1;
        w->left_out[i] = w->each[i];
        for (int j = 0; j < FACTORS; j++) {
            w->least[j] = fmin(i ? w->least[j] : others.value[j], others.value[j]);
            w->most[j] = fmax(i ? w->most[j] : others.value[j], others.value[j]);
        }
    }
    return 0;
}

static int compute(struct work *w, const struct topt_hw *hw, struct topt_error *err)
{
    const double none[FACTORS] = {1, 1, 1, 1, 1};
    int n = w->r->n;
    if (TOPT_RESIZE(w->before, n) || TOPT_RESIZE(w->after, n) ||
        TOPT_RESIZE(w->left_out, n) || TOPT_RESIZE(w->each, n))
        return topt_nomem(err, "the calibration");
    if (predict(w->profile, w->r, none, w->before, err) ||
        fit_memory(hw, w->r, &w->memory, err) ||
        fit_factors(w->profile, w->r, -1, &w->all, err) ||
        predict(w->profile, w->r, w->all.value, w->after, err))
        return -1;
    return n > 1 ? leave_out(w, err) : 0;
}

/* ---- the profile ---------------------------------------------------------------------- */

static void add_source(json_t *section, const char *how)
{
    const char *was = topt_json_words_at(section, "source");
    json_object_set_new(section, "source",
                        json_sprintf("%s%s%s", was, *was ? "; " : "", how));
}

/* The profile with the factors, each of whose sections says so. */
static json_t *calibrated(const struct work *w, struct topt_error *err)
{
    struct topt_text how = {0};
    json_t *doc = factors_apply(w->profile, w->all.value), *link;
    size_t i;
    topt_text_add(&how, "calibrated by topt calibrate to %d measured step%s:", w->r->n,
                  w->r->n == 1 ? "" : "s");
    for (int j = 0; j < FACTORS; j++)
        if (w->all.fitted[j])
            topt_text_add(&how, " %s x %.4g (of %.4g to %.4g),", factors[j].name,
                          w->all.value[j], factors[j].low, factors[j].high);
    if (w->memory.fitted)
        topt_text_add(&how, " allocator %d permille (of 0 to %d),", w->memory.permille,
                      MEMORY_PERMILLE_MOST);
    topt_text_add(&how, " mean error of steps %.1f %% before and %.1f %% after",
                  100 * mean_error(w, w->before), 100 * mean_error(w, w->after));
    if (!doc || how.oom) {
        json_decref(doc);
        topt_text_fini(&how);
        topt_nomem(err, "the profile");
        return NULL;
    }
    if (w->memory.fitted)
        json_object_set_new(json_object_get(doc, "device"), "allocator_permille",
                            json_integer(w->memory.permille));
    add_source(json_object_get(doc, "device"), how.s);
    json_array_foreach(json_object_get(doc, "links"), i, link) add_source(link, how.s);
    topt_text_fini(&how);
    return doc;
}

/* ---- the result ----------------------------------------------------------------------- */

static json_t *reports_json(const struct work *w)
{
    json_t *list = json_array();
    for (int i = 0; i < w->r->n; i++) {
        json_t *o = json_pack("{s:s, s:f, s:f, s:f}", "name", w->r->at[i].name,
                              "measured_ns", w->r->at[i].step_ns, "before_ns",
                              w->before[i], "after_ns", w->after[i]);
        if (w->r->n > 1)
            json_object_set_new(o, "left_out_ns", json_real(w->left_out[i]));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *factors_json(const struct work *w)
{
    json_t *list = json_array();
    for (int j = 0; j < FACTORS; j++) {
        json_t *o = json_pack(
            "{s:s, s:s, s:f, s:f, s:f, s:f, s:b}", "name", factors[j].name, "what",
            factors[j].what, "value", w->all.value[j], "low", factors[j].low, "high",
            factors[j].high, "share", w->all.share[j], "fitted", w->all.fitted[j]);
        if (*w->all.why[j])
            json_object_set_new(o, "why", json_string(w->all.why[j]));
        if (w->r->n > 1 && w->all.fitted[j])
            json_object_update_new(
                o, json_pack("{s:f, s:f}", "least", w->least[j], "most", w->most[j]));
        json_array_append_new(list, o);
    }
    return list;
}

/* The allocator's share among the factors, and the errors of memory. */
static void put_memory(json_t *doc, const struct memory_fit *m)
{
    json_t *o =
        json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:b}", "name", "allocator", "what",
                  "share of what comes and goes that its allocator holds "
                  "and cannot use",
                  "value", m->permille / 1e3, "low", 0.0, "high",
                  MEMORY_PERMILLE_MOST / 1e3, "share", m->share, "fitted", m->fitted);
    if (m->why)
        json_object_set_new(o, "why", json_string(m->why));
    if (m->fitted && m->reports > 1)
        json_object_update_new(
            o, json_pack("{s:f, s:f}", "least", m->least / 1e3, "most", m->most / 1e3));
    json_array_append_new(json_object_get(doc, "factors"), o);
    if (!m->reports)
        return;
    json_object_update_new(doc, json_pack("{s:f, s:f}", "memory_before", m->before,
                                          "memory_after", m->after));
    if (m->fitted && m->reports > 1)
        json_object_set_new(doc, "memory_left_out", json_real(m->left_out));
}

static json_t *result(const struct topt_hw *hw, const struct work *w,
                      struct topt_error *err)
{
    json_t *profile = calibrated(w, err);
    if (!profile)
        return NULL;
    double before = mean_error(w, w->before), after = mean_error(w, w->after),
           left = w->r->n > 1 ? mean_error(w, w->left_out) : after;
    json_t *doc = json_pack("{s:s, s:o, s:o, s:f, s:f, s:b, s:o}", "hw", topt_hw_name(hw),
                            "reports", reports_json(w), "factors", factors_json(w),
                            "error_before", before, "error_after", after, "better",
                            left < before, "profile", profile);
    if (doc && w->r->n > 1)
        json_object_update_new(doc, json_pack("{s:f, s:f}", "left_out_before", before,
                                              "left_out_after", left));
    if (doc)
        put_memory(doc, &w->memory);
    else
        topt_nomem(err, "the calibration");
    return doc;
}

int topt_calibrate(const struct topt_hw *hw, const struct topt_reports *reports,
                   json_t **ret, struct topt_error *err)
{
    struct work w = {.r = reports};
    w.profile = topt_hw_to_json(hw);
    int rc = w.profile ? compute(&w, hw, err) : topt_nomem(err, "the profile");
    json_t *doc = rc ? NULL : result(hw, &w, err);
    json_decref(w.profile);
    free(w.before);
    free(w.after);
    free(w.left_out);
    free(w.each);
    if (!doc)
        return -1;
    *ret = doc;
    return 0;
}

/* ---- as text -------------------------------------------------------------------------- */

static void put_report(struct topt_text *t, const json_t *o, int width)
{
    double measured = topt_json_number_at(o, "measured_ns");
    static const char *const of[] = {"before_ns", "after_ns", "left_out_ns"};
    char a[32];
    topt_text_add(t, "%-*s %10s", width, topt_json_words_at(o, "name"),
                  topt_show_ns((int64_t)measured, a, sizeof a));
    for (int i = 0; i < 3; i++)
        if (json_object_get(o, of[i]))
            topt_text_add(
                t, " %10s %+6.1f %%",
                topt_show_ns((int64_t)topt_json_number_at(o, of[i]), a, sizeof a),
                100 * (topt_json_number_at(o, of[i]) / measured - 1));
    topt_text_add(t, "\n");
}

static void put_factor(struct topt_text *t, const json_t *o)
{
    topt_text_add(t, "%-9s %7.3f  %4.4g to %-4.4g %5.0f %%  ",
                  topt_json_words_at(o, "name"), topt_json_number_at(o, "value"),
                  topt_json_number_at(o, "low"), topt_json_number_at(o, "high"),
                  100 * topt_json_number_at(o, "share"));
    if (json_object_get(o, "least"))
        topt_text_add(t, "%.3f to %.3f", topt_json_number_at(o, "least"),
                      topt_json_number_at(o, "most"));
    if (!json_is_true(json_object_get(o, "fitted")))
        topt_text_add(t, "left alone: ");
    else if (json_object_get(o, "why"))
        topt_text_add(t, "; ");
    topt_text_add(t, "%s\n", topt_json_words_at(o, "why"));
}

char *topt_calibrate_text(const json_t *doc)
{
    const json_t *reports = json_object_get(doc, "reports"), *left;
    struct topt_text t = {0};
    int width = 6;
    size_t i;
    json_t *o;
    left = json_object_get(doc, "left_out_after");
    json_array_foreach(reports, i, o)
    {
        int n = (int)strlen(topt_json_words_at(o, "name"));
        width = n > width ? n : width;
    }
    topt_text_add(&t, "%-*s %10s %10s %8s %10s %8s%s\n", width, "report", "measured",
                  "before", "", "after", "", left ? "   left out" : "");
    json_array_foreach(reports, i, o) put_report(&t, o, width);
    topt_text_add(&t, "\n%-9s %7s  %-12s %7s  %s\n", "factor", "value", "bounds", "share",
                  left ? "with each report left out" : "");
    json_array_foreach(json_object_get(doc, "factors"), i, o) put_factor(&t, o);
    topt_text_add(
        &t, "(share: the most of a step's time, or of memory, that follows it)\n\n");
    topt_text_add(&t, "mean error %.1f %% before, %.1f %% after",
                  100 * topt_json_number_at(doc, "error_before"),
                  100 * topt_json_number_at(doc, "error_after"));
    if (left)
        topt_text_add(&t, "; of reports that were left out of the fit %.1f %%\n",
                      100 * json_number_value(left));
    else
        topt_text_add(&t,
                      "; one report can't be left out, so that nothing says how other "
                      "steps are predicted\n");
    if (json_object_get(doc, "memory_before"))
        topt_text_add(&t, "mean error of reserved memory %.1f %% before, %.1f %% after",
                      100 * topt_json_number_at(doc, "memory_before"),
                      100 * topt_json_number_at(doc, "memory_after"));
    if (json_object_get(doc, "memory_left_out"))
        topt_text_add(&t, "; of reports that were left out of the fit %.1f %%",
                      100 * topt_json_number_at(doc, "memory_left_out"));
    if (json_object_get(doc, "memory_before"))
        topt_text_add(&t, "\n");
    if (t.oom)
        topt_text_fini(&t);
    return t.s;
}
