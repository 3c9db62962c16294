/* Whatever bytes come as ONNX, importing gives a model or one line of error. */
#include "mutate.h"
#include "onnx_graph.h"
#include "tap.h"
#include "topt_model.h"

enum { ROUNDS = 7000, CAP = 16384 };

static int imported, refused, wrong;

static void try(const char *bytes, size_t len)
{
    char *exact = malloc(len + 1);
    struct topt_error err = {0};
    memcpy(exact, bytes, len);
    struct topt_model *m = topt_model_import(exact, len, "fuzz", NULL, &err);
    free(exact);
    imported += m != NULL;
    refused += !m;
    wrong +=
        !m && (!err.text[0] || err.code == TOPT_OK || strchr(err.text, '\n') != NULL);
    topt_model_destroy(m);
}

/* Types that the other graphs have not, one after the other. */
static void graph_rest(struct graph *g)
{
    static const char *const through[] = {
        "Softmax", "LogSoftmax", "Selu", "Mish", "Erf", "Abs", "Softsign", "HardSigmoid"};
    const double pads[] = {0, 0, 1, 0, 0, 0, 0, 2}, zero = 0;
    char from[32], to[40];
    *g = graph_begin(13);
    graph_input(g, "x", 1, 4, DIMS(2, 3, 4, 5));
    graph_input(g, "labels", 7, 1, DIMS(2));
    graph_tensor(g, "pads", 7, 1, DIMS(8), pads);
    graph_tensor(g, "zero", 1, 0, NULL, &zero);
    graph_weights(g, "w", 3, DIMS(2, 24, 3));
    graph_weights(g, "r", 3, DIMS(2, 24, 6));
    graph_weights(g, "v", 2, DIMS(12, 7));
    graph_list(g, "axis", 1, DIMS(1));
    graph_list(g, "rank", 1, DIMS(2));
    graph_list(g, "zeroth", 1, DIMS(0));
    graph_node(g, "Shape", "x", "shape", "");
    graph_node(g, "Gather", "shape zeroth", "n", "");
    graph_node(g, "Equal", "n rank", "same", "");
    graph_if(g, "same", "Relu", "Tanh", "x", "branch");
    graph_node(g, "Pad", "branch pads zero", "padded", "");
    graph_node(g, "Max", "padded padded", "most", "");
    graph_node(g, "Mean", "most padded", "mean", "");
    graph_node(g, "Div", "mean most", "part", "");
    graph_node(g, "ReduceL2", "part", "norm", "axes=2,3 keepdims=0");
    snprintf(from, sizeof from, "norm");
    for (size_t i = 0; i < sizeof through / sizeof *through; i++) {
        snprintf(to, sizeof to, "f%zu", i);
        graph_node(g, through[i], from, to, "");
        memcpy(from, to, sizeof from);
    }
    graph_node(g, "GlobalMaxPool", "x", "top", "");
    graph_node(g, "Flatten", "top", "tops", "axis=1");
    snprintf(to, sizeof to, "%s tops", from);
    graph_node(g, "Min", to, "least", "");
    graph_node(g, "Unsqueeze", "least axis", "rows", "");
    graph_node(g, "LSTM", "rows w r", "all ends", "hidden_size=6 layout=1");
    graph_node(g, "Flatten", "all", "cells", "axis=1");
    graph_node(g, "MatMul", "cells v", "y", "");
    graph_node(g, "SoftmaxCrossEntropyLoss", "y labels", "loss", "");
    graph_end(g, "loss");
}

int main(int argc, char **argv)
{
    static char bytes[CAP];
    int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    enum { SEEDS = 5 };
    struct graph seed[SEEDS];
    if (!reads_onnx())
        skip_all("this topt reads no ONNX");
    graph_block(&seed[0]);
    graph_images(&seed[1]);
    graph_steps(&seed[2]);
    graph_digits(&seed[3]);
    graph_rest(&seed[4]);
    for (int s = 0; s < SEEDS; s++) {
        for (size_t cut = 3; cut < seed[s].file.len; cut += 3)
            try(seed[s].file.s, cut);
        for (int i = 0; i < rounds; i++) {
            size_t len = seed[s].file.len;
            memcpy(bytes, seed[s].file.s, len);
            for (size_t n = mutate_below(3) + 1; n > 0 && len > 8; n--)
                len = mutate_once(bytes, len, CAP);
            bytes[0] = 8; /* else it is not taken for ONNX */
            try(bytes, len);
        }
        topt_text_fini(&seed[s].file);
    }
    printf("# %d imported, %d refused\n", imported, refused);
    is_int(wrong, 0, "every answer is a model or one line");
    ok(imported > rounds / 20 && refused > rounds / 10, "both were seen often");
    return done_testing();
}
