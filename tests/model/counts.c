/* Hugging Face configs against transformers itself: oracle/counts.json has the configs of
 * public models and small ones of each family, and the numbers of parameters that
 * oracle/make_counts.py had from transformers for them; oracle/published.json has others,
 * with the sources of their numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "topt_json.h"
#include "topt_model.h"

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
    char *text = json_dumps(config, 0);
    struct topt_import_options o = {0};
    struct topt_model *m = topt_model_import(text, strlen(text), "config.json", &o, &err);
    if (m)
        topt_model_stats(m, &stats);
    ok(m && stats.parameters == json_integer_value(json_object_get(row, "parameters")),
       "%s: %lld parameters, %lld are right%s%s", name, (long long)stats.parameters,
       (long long)json_integer_value(json_object_get(row, "parameters")), m ? "" : ": ",
       m ? "" : err.text);
    topt_model_destroy(m);
    free(text);
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
