/* shapes.c - what operators on sequences refuse, and in which words. */
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "topt_model.h"

enum { BATCH = 2, SEQ = 6 };

static const struct refused {
    const char *kind;
    int ninputs;
    int64_t count[3], unit[3]; /* features of the inputs */
    struct topt_attrs attrs;
    const char *says;
} refusals[] = {
    {.kind = "lstm", .ninputs = 1, .count = {5}, .unit = {3}, .says = "groups of 4"},
    {.kind = "gru", .ninputs = 1, .count = {5}, .unit = {4}, .says = "groups of 3"},
    {.kind = "slice",
     .ninputs = 1,
     .count = {2},
     .unit = {4},
     .attrs = {.offset = 3, .features_unit = 2},
     .says = "numbers 3 to 4 of units of 4"},
    {.kind = "concat",
     .ninputs = 2,
     .count = {2, 3},
     .unit = {1, 1},
     .says = "'x1' has 3 in dimension d, not 2"},
    {.kind = "concat",
     .ninputs = 1,
     .count = {2},
     .unit = {1},
     .says = "'x1' is missing"},
    {.kind = "concat_counts",
     .ninputs = 2,
     .count = {2, 3},
     .unit = {1, 2},
     .says = "groups of 1 and of 2"},
    {.kind = "regroup",
     .ninputs = 1,
     .count = {4},
     .unit = {3},
     .attrs = {.features = 5, .features_unit = 2},
     .says = "4 features of 3 numbers can't be 5 of 2"},
    {.kind = "regroup",
     .ninputs = 1,
     .count = {4},
     .unit = {3},
     .attrs = {.features = (int64_t)1 << 40, .features_unit = (int64_t)1 << 40},
     .says = "can't be"},
    {.kind = "transpose", .ninputs = 1, .count = {4}, .unit = {2}, .says = "groups of 1"},
    {.kind = "select",
     .ninputs = 1,
     .count = {4},
     .unit = {1},
     .attrs = {.offset = 6},
     .says = "position 6 of 6"},
    {.kind = "dropout",
     .ninputs = 1,
     .count = {4},
     .unit = {1},
     .attrs = {.rate = 1},
     .says = "less than 1"},
    {.kind = "rotary",
     .ninputs = 1,
     .count = {4},
     .unit = {6},
     .attrs = {.head_dim = 4},
     .says = "units of 6"},
    {.kind = "rotary",
     .ninputs = 1,
     .count = {4},
     .unit = {3},
     .says = "rope_dim 3 and head_dim 3"},
    {.kind = "attention",
     .ninputs = 2,
     .count = {2, 2},
     .unit = {4, 8},
     .attrs = {.heads = 3, .kv_heads = 2, .head_dim = 4},
     .says = "do not fit together"},
    {.kind = "attention",
     .ninputs = 2,
     .count = {3, 3},
     .unit = {4, 8},
     .attrs = {.heads = 2, .head_dim = 4},
     .says = "3 key-value heads, not 2"},
    {.kind = "attention",
     .ninputs = 2,
     .count = {2, 2},
     .unit = {4, 7},
     .attrs = {.heads = 2, .head_dim = 4},
     .says = "groups of 7, groups of 8"},
    {.kind = "attention",
     .ninputs = 3,
     .count = {2, 2, 1},
     .unit = {4, 4, 4},
     .attrs = {.heads = 2, .head_dim = 4},
     .says = "4 numbers of a key are shared, of a head_dim of 4"},
    {.kind = "attention",
     .ninputs = 2,
     .count = {2, 2},
     .unit = {4, 8},
     .attrs = {.heads = 2, .head_dim = 4, .chunk = 2},
     .says = "a chunk of keys needs a causal mask"},
    {.kind = "attention",
     .ninputs = 2,
     .count = {2, 2},
     .unit = {4, 8},
     .attrs = {.heads = 2, .head_dim = 4, .rope_theta = 10000},
     .says = "apart they are rotated by operators of their own"},
    {.kind = "attention",
     .ninputs = 1,
     .count = {2},
     .unit = {11},
     .attrs = {.heads = 2, .head_dim = 4, .v_head_dim = 3, .rope_theta = 10000},
     .says = "values of as many numbers"},
    {.kind = "attention",
     .ninputs = 1,
     .count = {2},
     .unit = {13},
     .attrs = {.heads = 2, .head_dim = 4},
     .says = "groups of 13, groups of 12"},
    {.kind = "attention",
     .ninputs = 2,
     .count = {1, 1},
     .unit = {4, 8},
     .attrs = {.heads = (int64_t)1 << 40, .kv_heads = 1, .head_dim = (int64_t)1 << 40},
     .says = "2^20"},
};

static void check(const struct refused *x)
{
    struct topt_error err = {0};
    struct topt_attrs table = {.vocab = 5, .features = 3};
    struct topt_model *m = topt_model_create("test", BATCH, SEQ, &err);
    int e = topt_model_add(m, "embedding", "e", 0, NULL, &table, &err);
    int input[3] = {-1, -1, -1};
    for (int i = 0; i < x->ninputs; i++) {
        struct topt_attrs widen = {.features = x->count[i], .features_unit = x->unit[i]};
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        input[i] = topt_model_add(m, "linear", name, 1, &e, &widen, &err);
    }
    int t = topt_model_add(m, x->kind, "op", x->ninputs, input, &x->attrs, &err);
    ok(t < 0 && strstr(err.text, x->says), "%s: %s", x->kind, err.text);
    topt_model_destroy(m);
}

/* Also where no importer looked: a weight that is a tensor has its own shape. */
static void check_tied(const char *kind, int ninputs, struct topt_attrs attrs,
                       const char *says)
{
    struct topt_error err = {0};
    struct topt_attrs table = {.vocab = 5, .features = 3};
    struct topt_model *m = topt_model_create("test", BATCH, SEQ, &err);
    int w = topt_model_add(m, "variable", "w", 0, NULL, &table, &err), input[2] = {w, w};
    if (ninputs == 2)
        input[0] = topt_model_add(m, "embedding", "e", 1, &w, NULL, &err);
    int tied = topt_model_add(m, kind, "tied", ninputs, input, NULL, &err);
    ok(input[0] >= 0 && tied >= 0, "%s with a tied weight", kind);
    int t = topt_model_add(m, kind, "op", ninputs, input, &attrs, &err);
    ok(t < 0 && strstr(err.text, says), "%s", err.text);
    topt_model_destroy(m);
}

int main(void)
{
    check_tied("linear", 2, (struct topt_attrs){.features = 5},
               "the weight is a tensor, so features can't be given");
    check_tied("embedding", 1, (struct topt_attrs){.vocab = 5},
               "the weight is a tensor, so vocab can't be given");
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        check(&refusals[i]);
    return done_testing();
}
