/* train.c - a small model of text, its strategy, 60 steps, by the installed library:
 *
 *     cc train.c $(pkg-config --cflags --libs topt-runtime) -o train
 *     ./train text.txt                  alone
 *     mpirun -n 4 ./train text.txt      the same losses on four ranks, by the best plan for them
 */
#include <stdio.h>
#include <topt.h>

static int train(struct topt_training *t, const char *text, double *loss)
{
    topt_training_variable(t, "table", 128, 64);
    topt_training_operator(t, "embedding", "tokens", "table", NULL);
    topt_training_operator(t, "linear", "hidden", "tokens", "{\"features\": 256}");
    topt_training_operator(t, "unary", "relu", "hidden", "{\"activation\": \"relu\"}");
    topt_training_operator(t, "linear", "out", "relu", "{\"features\": 64}");
    topt_training_operator(t, "linear", "logits", "out,table", NULL);
    topt_training_loss(t, "cross_entropy", "logits");
    topt_training_optimizer(t, "adam", 0.003);
    topt_training_find_strategy(t, "lab-cpu", 0);
    topt_training_build(t, text, 1);
    return topt_training_run(t, 60, loss);
}

int main(int argc, char **argv)
{
    double loss[60];
    if (argc != 2) {
        fprintf(stderr, "usage: train TEXT\n");
        return 2;
    }
    struct topt_training *t = topt_training_open(&argc, &argv, "example", 8, 32);
    int rc = t ? train(t, argv[1], loss) : -1;
    if (!rc && !topt_training_rank(t))
        printf("loss %.4f to %.4f\n", loss[0], loss[59]);
    if (rc && (!t || topt_training_speaks(t)))
        fprintf(stderr, "train: %s\n", t ? topt_training_error(t) : "out of memory");
    topt_training_close(t);
    return rc ? 1 : 0;
}
