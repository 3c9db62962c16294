/* train.c - a program of one's own over the library: a small model of text, its strategy, 60
 * steps.  It is built against an installed topt:
 *
 *     cc train.c $(pkg-config --cflags --libs topt-runtime) -o train
 *     ./train text.txt                  alone
 *     mpirun -n 4 ./train text.txt      the same losses on four ranks, by the best plan for them
 */
#include <stdio.h>
#include <topt_train.h>

static int build_model(struct topt_train *t)
{
    const struct topt_attrs relu = {.activation = TOPT_ACT_RELU};
    int table = topt_train_variable(t, "table", 128, 64);
    int x = topt_train_embedding(t, "tokens", table);
    x = topt_train_linear(t, "hidden", x, 256);
    x = topt_train_apply(t, "unary", "relu", 1, &x, &relu);
    x = topt_train_linear(t, "out", x, 64);
    x = topt_train_matmul(t, "logits", x, table);
    return topt_train_loss(t, x);
}

static int train(struct topt_train *t, const char *text, struct topt_error *err)
{
    double loss[60];
    build_model(t);
    if (topt_train_find_strategy(t, "lab-cpu", TOPT_ADAM, 0, err) ||
        topt_train_build(t, text, 0.003, 1, err) || topt_train_run(t, 60, loss, err))
        return -1;
    if (topt_train_rank(t) == 0)
        printf("loss %.4f to %.4f\n", loss[0], loss[59]);
    return 0;
}

int main(int argc, char **argv)
{
    struct topt_error err = {0};
    struct topt_train *t;
    if (argc != 2) {
        fprintf(stderr, "usage: train TEXT\n");
        return 2;
    }
    if (topt_train_open(&argc, &argv, "example", 8, 32, &t, &err)) {
        fprintf(stderr, "train: %s\n", err.text);
        return 1;
    }
    int rc = train(t, argv[1], &err);
    if (rc && !topt_comm_failed_elsewhere(&err))
        fprintf(stderr, "train: %s\n", err.text);
    topt_train_close(t);
    return rc ? 1 : 0;
}
