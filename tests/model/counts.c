/* Hugging Face configs against transformers itself: oracle/counts.json has the configs of
 * public models and small ones of each family, and the numbers of parameters that
 * oracle/make_counts.py had from transformers for them, in all and by layer;
 * oracle/published.json has others, with the sources of their numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "class_config.h"
#include "tap.h"
#include "topt_json.h"
#include "topt_model.h"

/* Models whose lists in transformers are no layers of ours. */
static const char *listed_otherwise(const char *name)
{
    static const char *const of[][2] = {
        {"albert", "layers share their parameters"},
        {"xlm", "lists of the parts of layers"},
        {"flaubert", "lists of the parts of layers"},
        {"gemma-3n", "lists of projections beside the layers"},
        {"longformer", "a layer's second projections are counted with the whole"},
        {"mob1", "a list of the halves of layers"},
        {"mob2", "the first layer is no part of the list"},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (!strncmp(name, of[i][0], strlen(of[i][0])))
            return of[i][1];
    return NULL;
}

/* Number of layers, parameters of the largest and of all.  Tables that all layers read stand
 * in the first one there, and outside here: a thousandth of a layer at most. */
static void check_layers(const char *name, const struct topt_model *m, const json_t *want)
{
    double *of = calloc((size_t)m->nlayers + 1, sizeof *of), most = 0, all = 0;
    int64_t n = json_integer_value(json_array_get(want, 0));
    double largest = (double)json_integer_value(json_array_get(want, 1)),
           sum = (double)json_integer_value(json_array_get(want, 2));
    if (!n && m->nlayers < 2) { /* a list of one module is none */
        free(of);
        return;
    }
    for (int i = 0; of && i < m->nops; i++) {
        double *layer = &of[m->op[i].layer < 0 ? m->nlayers : m->op[i].layer];
        *layer += topt_op_parameters(&m->op[i]);
    }
    for (int l = 0; of && l < m->nlayers; l++) {
        most = of[l] > most ? of[l] : most;
        all += of[l];
    }
    ok(of && m->nlayers == n && fabs(most - largest) <= largest / 1000 &&
           fabs(all - sum) <= sum / 1000,
       "%s: %d layers, of %.0f at most and %.0f parameters; %lld of %.0f and %.0f are "
       "right",
       name, m->nlayers, most, all, (long long)n, largest, sum);
    free(of);
}

static void check(const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "name"));
    json_t *config = json_object_get(row, "config");
    json_t *class = json_object_get(row, "class");
    struct topt_error err = {0};
    struct topt_model_stats stats = {0};
    const char *end = json_string_value(class);
    /* a class that is no choice among several says what a model ends with */
    if (end && strncmp(end, "Auto", 4) && !json_object_get(config, "architectures"))
        json_object_set_new(config, "architectures", json_pack("[s]", end));
    struct topt_import_options o = {0};
    struct topt_model *m = import_class(config, &o, &err);
    if (m)
        topt_model_stats(m, &stats);
    ok(m && stats.parameters == json_integer_value(json_object_get(row, "parameters")),
       "%s: %lld parameters, %lld are right%s%s", name, (long long)stats.parameters,
       (long long)json_integer_value(json_object_get(row, "parameters")), m ? "" : ": ",
       m ? "" : err.text);
    if (m && json_object_get(row, "layers") && !listed_otherwise(name))
        check_layers(name, m, json_object_get(row, "layers"));
    /* the count being right, nothing that counts is unread */
    ok(!m || !m->note || !strstr(m->note, "not read"), "%s: nothing is called unread: %s",
       name, m && m->note ? m->note : "");
    topt_model_destroy(m);
}

static void check_all(const char *file)
{
    char path[600];
    struct topt_error err = {0};
    snprintf(path, sizeof path, "%s/%s", ORACLE, file);
    json_t *doc = topt_json_load(path, 8 << 20, &err);
    if (!ok(doc != NULL, "%s is read %s", file, err.text))
        return;
    const json_t *models = json_object_get(doc, "models");
    for (size_t i = 0; i < json_array_size(models); i++)
        check(json_array_get(models, i));
    json_decref(doc);
}

int main(void)
{
    check_all("counts.json");
    check_all("published.json");
    return done_testing();
}
