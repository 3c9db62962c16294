/* fashion.c - a network for Fashion-MNIST: two convolutions and two layers, by the
 * installed library.
 *
 *     cc fashion.c $(pkg-config --cflags --libs topt-runtime) -o fashion
 *     mpirun -n 2 ./fashion /usr/share/datasets/fashion-mnist 100
 *     mpirun -n 2 ./fashion /usr/share/datasets/fashion-mnist 100 unix:/run/topt/toptd.sock
 *
 * The folder has train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz.  The strategy
 * is found here, or by the toptd at the URL. */
#include <stdio.h>
#include <stdlib.h>
#include <topt.h>

#define PAD                                                                              \
    "\"kernel_h\": 3, \"kernel_w\": 3, \"pad_top\": 1, \"pad_left\": 1, "                \
    "\"pad_bottom\": 1, \"pad_right\": 1"
#define HALF "{\"kernel_h\": 2, \"kernel_w\": 2, \"stride_h\": 2, \"stride_w\": 2}"
#define RELU "{\"activation\": \"relu\"}"

static const struct {
    const char *kind, *name, *inputs, *attributes;
} network[] = {
    {"image", "image", "", "{\"channels\": 1, \"height\": 28, \"width\": 28}"},
    {"conv", "conv1", "image", "{\"features\": 8, " PAD "}"},
    {"unary", "relu1", "conv1", RELU},
    {"pool", "pool1", "relu1", HALF},
    {"conv", "conv2", "pool1", "{\"features\": 16, " PAD "}"},
    {"unary", "relu2", "conv2", RELU},
    {"pool", "pool2", "relu2", HALF},
    {"flatten", "flat", "pool2", NULL},
    {"linear", "hidden", "flat", "{\"features\": 64}"},
    {"bias", "hidden.bias", "hidden", NULL},
    {"unary", "relu3", "hidden.bias", RELU},
    {"linear", "classes", "relu3", "{\"features\": 10}"},
    {"bias", "classes.bias", "classes", NULL},
};

static void describe(struct topt_training *t)
{
    for (size_t i = 0; i < sizeof network / sizeof *network; i++)
        topt_training_operator(t, network[i].kind, network[i].name, network[i].inputs,
                               network[i].attributes);
    topt_training_loss(t, "cross_entropy", "classes.bias");
    topt_training_optimizer(t, "adam", 0.002);
}

static int train(struct topt_training *t, char **argv, int64_t steps, double *loss)
{
    const char *data = argv[1];
    double before, after;
    describe(t);
    if (argv[3])
        topt_training_ask_strategy(t, argv[3], "lab-cpu", 0);
    else
        topt_training_find_strategy(t, "lab-cpu", 0);
    topt_training_build(t, data, 1);
    topt_training_evaluate(t, data, 4, &before);
    topt_training_run(t, steps, loss);
    if (topt_training_evaluate(t, data, 4, &after))
        return -1;
    if (!topt_training_rank(t))
        printf("ranks %d: loss %.4f to %.4f; of four batches %.4f to %.4f\n",
               topt_training_size(t), loss[0], loss[steps - 1], before, after);
    return 0;
}

int main(int argc, char **argv)
{
    int64_t steps = argc == 3 || argc == 4 ? atoll(argv[2]) : 0;
    if (steps < 1 || steps > 1000000) {
        fprintf(stderr, "usage: fashion FOLDER STEPS [URL]\n");
        return 2;
    }
    double *loss = calloc((size_t)steps, sizeof *loss);
    struct topt_training *t =
        loss ? topt_training_open(&argc, &argv, "fashion", 64, 1) : NULL;
    int rc = t ? train(t, argv, steps, loss) : -1;
    if (rc && (!t || topt_training_speaks(t)))
        fprintf(stderr, "fashion: %s\n", t ? topt_training_error(t) : "out of memory");
    topt_training_close(t);
    free(loss);
    return rc ? 1 : 0;
}
