/* hw_moves.c - what the assumed figures of a hardware profile move.
 *
 * Five models are planned for the profile as the default framework trains them.  Each plan is costed
 * again with one figure a tenth lower, and the change of its step's time is the weight of the figure. */
#include "hw_moves.h"

#include <string.h>

#include "hw_impl.h"
#include "topt_lower.h"
#include "topt_plan.h"

#define LLAMA(layers, hidden, inner, heads, groups, more)                                \
    "{\"model_type\":\"llama\",\"num_hidden_layers\":" layers ",\"hidden_size\":" hidden \
    ",\"intermediate_size\":" inner ",\"num_attention_heads\":" heads                    \
    ",\"num_key_value_heads\":" groups ",\"vocab_size\":128256,"                         \
    "\"max_position_embeddings\":8192" more "}"

/* Models whose steps rest on different figures: small ones on starts of kernels, one that fits into a node
 * on its links, larger ones on the network between nodes. */
static const struct row {
    const char *name, *config;
    int64_t gpus, batch, seq; /* the most GPUs; samples of one of them */
} rows[] = {
    {"BERT-large",
     "{\"model_type\":\"bert\",\"num_hidden_layers\":24,\"hidden_size\":1024,"
     "\"intermediate_size\":4096,\"num_attention_heads\":16,\"vocab_size\":30522,"
     "\"max_position_embeddings\":512,\"type_vocab_size\":2}",
     8, 8, 512},
    {"Llama 1B", LLAMA("16", "2048", "8192", "32", "8", ",\"tie_word_embeddings\":true"),
     8, 2, 2048},
    {"Llama 8B", LLAMA("32", "4096", "14336", "32", "8", ""), 16, 1, 4096},
    {"Mixtral 8x7B",
     "{\"model_type\":\"mixtral\",\"num_hidden_layers\":32,\"hidden_size\":4096,"
     "\"intermediate_size\":14336,\"num_attention_heads\":32,\"num_key_value_heads\":8,"
     "\"num_local_experts\":8,\"num_experts_per_tok\":2,\"vocab_size\":32000,"
     "\"max_position_embeddings\":32768}",
     64, 1, 4096},
    {"Llama 70B", LLAMA("80", "8192", "28672", "64", "8", ""), 64, 1, 4096},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* So many GPUs as the cluster has of those that the row takes. */
static int64_t gpus_of(const struct topt_hw *hw, const struct row *r)
{
    int64_t all = (int64_t)topt_hw_max_nodes(hw) * topt_hw_gpus_per_node(hw), n = r->gpus;
    while (n > all)
        n /= 2;
    int64_t per_node = topt_hw_gpus_per_node(hw);
    return n > per_node ? n / per_node * per_node : n;
}

/* The plan of a row; '*ret' is NULL where it does not fit. */
static int plan_of(const struct topt_hw *hw, const struct row *r,
                   struct topt_plan_doc **ret, struct topt_error *err)
{
    struct topt_request q;
    struct topt_query words = {0};
    struct topt_import_options shape = {.batch = r->batch * gpus_of(hw, r),
                                        .seq = r->seq};
    json_t *answer = NULL;
    *ret = NULL;
    topt_request_init(&q);
    struct topt_model *m =
        topt_model_import(r->config, strlen(r->config), r->name, &shape, err);
    q.model = m;
    q.hw = hw;
    int rc = !m || topt_request_read(&words, &q, NULL, err);
    q.mode = TOPT_MINI_TIME;
    q.gpus = gpus_of(hw, r);
    rc = rc || topt_request_complete(&q, err) || topt_plan(&q, &answer, err);
    if (!rc && json_is_true(json_object_get(answer, "feasible")))
        rc = topt_plan_read(topt_plan_in(answer), ret, err);
    json_decref(answer);
    topt_model_destroy(m);
    return rc ? -1 : 0;
}

/* The time of a plan's step on another profile. */
static int time_on(const struct topt_hw *hw, const struct topt_plan_doc *p,
                   int64_t *ret_ns, struct topt_error *err)
{
    struct topt_strategy_cost cost;
    struct topt_router *router = topt_router_create(hw, &p->mesh);
    struct topt_costing k = {p->micro, hw, &p->mesh, &p->settings, router, NULL};
    if (!router)
        return topt_nomem(err, "a router");
    int rc = topt_cost_strategy(&k, p->strategy, &cost, err);
    *ret_ns = cost.time_ns;
    topt_router_destroy(router);
    return rc;
}

static json_t *moves_of(const struct topt_hw *hw, const char *figure,
                        struct topt_plan_doc *const plan[ROWS], const int64_t ns[ROWS],
                        struct topt_error *err)
{
    static const char *const memory[] = {"device.memory_bytes", "device.reserve_bytes"};
    json_t *moves = json_array();
    if (!strcmp(figure, memory[0]) || !strcmp(figure, memory[1]))
        return json_pack("{s:s, s:o}", "figure", figure, "moves", moves);
    struct topt_hw *lower = topt_hw_scaled(hw, figure, 0.9, err);
    int rc = !lower;
    for (int i = 0; i < ROWS && !rc; i++) {
        int64_t moved = 0;
        rc = plan[i] && time_on(lower, plan[i], &moved, err);
        json_array_append_new(moves,
                              plan[i] ? json_real((double)(moved - ns[i]) / (double)ns[i])
                                      : json_null());
    }
    topt_hw_destroy(lower);
    if (rc) {
        json_decref(moves);
        return NULL;
    }
    return json_pack("{s:s, s:o}", "figure", figure, "moves", moves);
}

json_t *topt_hw_moves(const struct topt_hw *hw, struct topt_error *err)
{
    struct topt_plan_doc *plan[ROWS] = {NULL};
    int64_t ns[ROWS] = {0};
    json_t *figures = json_array(), *models = json_array(), *name,
           *assumed = topt_hw_groups(hw) ? json_array() : topt_hw_assumed(hw);
    size_t k;
    int rc = 0;
    for (int i = 0; i < ROWS && !rc && json_array_size(assumed); i++) {
        rc = plan_of(hw, &rows[i], &plan[i], err) ||
             (plan[i] && time_on(hw, plan[i], &ns[i], err));
        json_array_append_new(models,
                              json_pack("{s:s, s:I}", "name", rows[i].name, "gpus",
                                        (json_int_t)gpus_of(hw, &rows[i])));
    }
    json_array_foreach(assumed, k, name)
    {
        json_t *one = rc ? NULL : moves_of(hw, json_string_value(name), plan, ns, err);
        rc = rc || !one || json_array_append_new(figures, one);
    }
    for (int i = 0; i < ROWS; i++)
        topt_plan_doc_destroy(plan[i]);
    json_decref(assumed);
    json_t *ret = json_pack("{s:o, s:o}", "models", models, "figures", figures);
    if (!rc)
        return ret;
    json_decref(ret);
    return NULL;
}
