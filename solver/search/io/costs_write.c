/* costs_write.c - a bare problem as a "topt-costs/1" document. */
#include "costs.h"
#include "check_problem.h"

#include "topt_json.h"
#include "topt_text.h"

#include <inttypes.h>
#include <stdlib.h>

static void write_cost(struct topt_text *t, const char *before, struct topt_cost c)
{
    topt_text_add(t, "%s[%" PRId64 ",%" PRId64 "]", before, c.memory, c.time);
}

static int write_name(struct topt_text *t, const char *before, const char *name,
                      struct topt_error *err)
{
    json_t *v = name && *name ? json_string(name) : NULL;
    char *text = v ? topt_json_text(v, 0) : NULL;
    if (text)
        topt_text_add(t, "%s%s", before, text);
    else
        topt_fail(err, TOPT_ERR_INVAL,
                  "an operator has no name, or one that is not UTF-8");
    json_decref(v);
    free(text);
    return text ? 0 : -1;
}

static int write_op(struct topt_text *t, const struct topt_search_op *op,
                    struct topt_error *err)
{
    if (op->nconfigs == 0)
        return topt_fail(err, TOPT_ERR_INVAL, "operator '%.60s' has no configuration",
                         op->name ? op->name : "");
    if (write_name(t, "{\"name\":", op->name, err))
        return -1;
    topt_text_add(t, ",\"configs\":[");
    for (int i = 0; i < op->nconfigs; i++)
        write_cost(t, i ? "," : "", op->cost[i]);
    topt_text_add(t, "]}");
    return 0;
}

static int write_entry(struct topt_text *t, const struct topt_search_edge *e, int edge,
                       int i, int j, struct topt_error *err)
{
    int64_t at = (int64_t)e->from_class[i] * e->table->to_classes + e->to_class[j];
    int32_t first = e->table->first[at], end = e->table->first[at + 1];
    if (first == end)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "edge %d: configurations %d and %d have no alternative", edge, i,
                         j);
    topt_text_add(t, j ? ",[" : "[");
    for (int32_t k = first; k < end; k++)
        write_cost(t, k > first ? "," : "", e->table->alt[k]);
    topt_text_add(t, "]");
    return 0;
}

static int write_edge(struct topt_text *t, const struct topt_search_problem *p, int edge,
                      struct topt_error *err)
{
    const struct topt_search_edge *e = &p->edge[edge];
    if (write_name(t, "{\"from\":", p->op[e->from].name, err) ||
        write_name(t, ",\"to\":", p->op[e->to].name, err))
        return -1;
    topt_text_add(t, ",\"costs\":[");
    for (int i = 0; i < p->op[e->from].nconfigs; i++) {
        topt_text_add(t, i ? ",[" : "[");
        for (int j = 0; j < p->op[e->to].nconfigs; j++)
            if (write_entry(t, e, edge, i, j, err))
                return -1;
        topt_text_add(t, "]");
    }
    topt_text_add(t, "]}");
    return 0;
}

static int check_names(const struct topt_search_problem *p, struct topt_error *err)
{
    json_t *seen = json_object();
    int rc = seen ? 0 : topt_costs_nomem(err);
    for (int i = 0; i < p->nops && !rc; i++) {
        const char *name = p->op[i].name;
        if (!name)
            rc = topt_fail(err, TOPT_ERR_INVAL, "operator %d has no name", i);
        else if (json_object_get(seen, name))
            rc = topt_fail(err, TOPT_ERR_INVAL, "two operators are named '%.60s'", name);
        else if (json_object_set_new(seen, name, json_true()))
            rc = topt_fail(err, TOPT_ERR_INVAL, "operator %d: its name is not UTF-8", i);
    }
    json_decref(seen);
    return rc;
}

int topt_costs_write(const struct topt_search_problem *problem, char **ret_text,
                     struct topt_error *err)
{
    struct topt_text t = {0};
    *ret_text = NULL;
    if (topt_search_check(problem, err) || check_names(problem, err))
        return -1;
    topt_text_add(&t, "{\"format\":\"topt-costs/1\",\n\"ops\":[");
    for (int i = 0; i < problem->nops; i++) {
        topt_text_add(&t, i ? ",\n" : "\n");
        if (write_op(&t, &problem->op[i], err))
            goto fail;
    }
    topt_text_add(&t, "],\n\"edges\":[");
    for (int i = 0; i < problem->nedges; i++) {
        topt_text_add(&t, i ? ",\n" : "\n");
        if (write_edge(&t, problem, i, err))
            goto fail;
    }
    topt_text_add(&t, "]}\n");
    if (t.oom) {
        topt_costs_nomem(err);
        goto fail;
    }
    *ret_text = t.s;
    return 0;
fail:
    topt_text_fini(&t);
    return -1;
}
