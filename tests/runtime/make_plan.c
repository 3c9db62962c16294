/* make_plan.c - random plans of the tests' models as files, without the search.
 *
 * usage: make_plan MODEL GPUS SEED COUNT PREFIX [TRAIN]   writes PREFIX0.json, PREFIX1.json... */
#include "models.h"
#include "topt_json.h"
#include "topt_export.h"
#include "topt_plan.h"
#include "topt_text.h"

#include <stdio.h>

static struct topt_model *model_of(const char *name)
{
    for (size_t k = 0; k < sizeof test_models / sizeof *test_models; k++) {
        struct topt_model *m = test_models[k].build();
        if (!strcmp(m->name, name))
            return m;
        topt_model_destroy(m);
    }
    return NULL;
}

static int write_plan(const json_t *plan, const char *prefix, size_t i,
                      struct topt_error *err)
{
    char path[4096];
    char *text = topt_json_text(plan, 1);
    snprintf(path, sizeof path, "%s%zu.json", prefix, i);
    int rc = text ? topt_write_file(path, text, strlen(text), err) : -1;
    free(text);
    return rc;
}

int main(int argc, char **argv)
{
    struct topt_error err = {0};
    json_t *plans = NULL;
    if (argc != 6 && argc != 7)
        return 2;
    struct topt_request r;
    topt_request_init(&r);
    struct topt_model *m = model_of(argv[1]);
    struct topt_hw *hw = topt_hw_load("lab-cpu", &err);
    r.hw = hw;
    r.gpus = atoi(argv[2]);
    r.settings.optimizer = TOPT_MOMENTUM;
    if (m && argc == 7 && topt_model_train(&m, argv[6], &err)) {
        fprintf(stderr, "make_plan: %s\n", err.text);
        return 1;
    }
    r.model = m;
    int rc =
        !hw || !m ||
        topt_plan_sample(&r, atoi(argv[4]), strtoull(argv[3], NULL, 10), &plans, &err);
    for (size_t i = 0; !rc && i < json_array_size(plans); i++)
        rc = write_plan(json_array_get(plans, i), argv[5], i, &err);
    if (rc)
        fprintf(stderr, "make_plan: %s\n", err.text);
    json_decref(plans);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
    return rc ? 1 : 0;
}
