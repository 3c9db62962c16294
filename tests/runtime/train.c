/* train.c - the training API, alone or under mpirun: a small model with a shared table.
 * usage: runtime_train [LOSSFILE]   one rank writes its losses there, more compare with them */
#include "tap.h"
#include "topt_train.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 15 };

static const char text[] =
    "one text, small and plain, that says the same thing over and over: "
    "one text, small and plain, that says the same thing over again.";

static void need(int rc, const struct topt_error *err)
{
    if (!rc)
        return;
    printf("Bail out! %s\n", err->text);
    fflush(stdout);
    _exit(1);
}

/* Losses of one rank are written, those of more are compared with them. */
static double against(const char *path, int alone, const double *loss)
{
    double worst = 0, x;
    FILE *f = fopen(path, alone ? "w" : "r");
    if (!f)
        return INFINITY;
    for (int i = 0; i < STEPS; i++) {
        if (alone)
            fprintf(f, "%.17g\n", loss[i]);
        else
            worst = fscanf(f, "%lf", &x) == 1 ? fmax(worst, fabs(x - loss[i])) : INFINITY;
    }
    fclose(f);
    return worst;
}

int main(int argc, char **argv)
{
    struct topt_error err = {0};
    struct topt_train *t;
    double loss[STEPS];
    const char *file = argc > 1 ? argv[1] : NULL;
    char data[] = "/tmp/topt-train-XXXXXX";
    int fd = mkstemp(data);
    if (fd < 0 || write(fd, text, sizeof text - 1) < 0)
        return 1;
    close(fd);
    need(topt_train_open(&argc, &argv, "shared", 8, 8, &t, &err), &err);
    int table = topt_train_variable(t, "table", 32, 16);
    int x = topt_train_embedding(t, "tokens", table);
    x = topt_train_linear(t, "hidden", x, 24);
    x = topt_train_apply(t, "unary", "relu", 1, &x,
                         &(struct topt_attrs){.activation = 0});
    x = topt_train_matmul(t, "logits", topt_train_linear(t, "out", x, 16), table);
    topt_train_loss(t, x);
    int built = topt_train_build(t, data, 0, 1, &err);
    need(topt_train_find_strategy(t, "lab-cpu", TOPT_MOMENTUM, 0, &err), &err);
    need(topt_train_build(t, data, 0.1, 1, &err), &err);
    need(topt_train_run(t, STEPS, loss, &err), &err);
    unlink(data);
    int rank = topt_train_rank(t), alone = topt_train_plan(t)->mesh.devices == 1;
    double off = file && !rank ? against(file, alone, loss) : 0;
    topt_train_close(t);
    if (rank)
        return 0;
    ok(built, "nothing is built without a strategy");
    ok(loss[STEPS - 1] < loss[0], "the loss falls: %.4f to %.4f", loss[0],
       loss[STEPS - 1]);
    ok(off < 1e-5, "losses are those of one rank (off by %.1e)", off);
    return done_testing();
}
