/* keep.c - trains on samples of its own, keeps what it trained, and asks it: by the
 * installed library.
 *
 *     cc keep.c $(pkg-config --cflags --libs topt-runtime) -lm -o keep
 *     mpirun -n 2 ./keep FOLDER
 *
 * Two clouds of points in the plane are told apart.  A second training, in the same process, goes
 * on from the checkpoint of the first. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <topt.h>

enum { BATCH = 32, STEPS = 40, CLASSES = 2 };

/* Sample i of a step lies near (1, 1) or (-1, -1), by its class. */
static int fill(void *ctx, const char *name, int64_t step, int64_t first, int64_t n,
                void *numbers)
{
    (void)ctx;
    for (int64_t i = 0; i < n; i++) {
        int64_t sample = step * BATCH + first + i;
        float side = sample % 2 ? 1.0f : -1.0f;
        if (!strcmp(name, "loss"))
            ((int32_t *)numbers)[i] = (int32_t)(sample % 2);
        else {
            ((float *)numbers)[2 * i] = side + 0.5f * sinf((float)sample);
            ((float *)numbers)[2 * i + 1] = side + 0.5f * cosf(3.0f * (float)sample);
        }
    }
    return 0;
}

static struct topt_training *begin(int *argc, char ***argv)
{
    struct topt_training *t = topt_training_open(argc, argv, "points", BATCH, 1);
    if (!t)
        return NULL;
    topt_training_placeholder(t, "point", 2);
    topt_training_operator(t, "linear", "hidden", "point", "{\"features\": 8}");
    topt_training_operator(t, "unary", "act", "hidden", "{\"activation\": \"tanh\"}");
    topt_training_operator(t, "linear", "classes", "act", "{\"features\": 2}");
    topt_training_loss(t, "cross_entropy", "classes");
    topt_training_optimizer(t, "adam", 0.02);
    topt_training_option(t, "clip", "1");
    topt_training_option(t, "schedule", "cosine");
    topt_training_option(t, "steps", "80");
    topt_training_find_strategy(t, "lab-cpu", 0);
    topt_training_build_from(t, fill, NULL, 1);
    return t;
}

/* What it knows: the share of labels that it meets, the classes of a batch, a parameter. */
static int tell(struct topt_training *t, const char *when)
{
    double loss, right, said[BATCH * CLASSES], weight[8 * 2];
    int met = 0;
    if (topt_training_evaluate_from(t, fill, NULL, 2, &loss, &right) ||
        topt_training_outputs(t) != BATCH * CLASSES ||
        topt_training_predict(t, fill, NULL, said) ||
        topt_training_parameter_size(t, "hidden.w") != 8 * 2 ||
        topt_training_parameter(t, "hidden.w", weight))
        return -1;
    for (int i = 0; i < BATCH; i++)
        met += (said[CLASSES * i + 1] > said[CLASSES * i]) == (i % 2);
    if (!topt_training_rank(t))
        printf("%s: loss %.4f, %.2f of the labels met, %d of %d points, %s[0] %.4f\n",
               when, loss, right, met, BATCH, topt_training_parameter_name(t, 0),
               weight[0]);
    return 0;
}

int main(int argc, char **argv)
{
    int rc = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: keep FOLDER\n");
        return 2;
    }
    for (int again = 0; again < 2 && !rc; again++) {
        struct topt_training *t = begin(&argc, &argv);
        rc = !t || (again && topt_training_load(t, argv[1])) ||
             tell(t, again ? "loaded" : "begun") || topt_training_run(t, STEPS, NULL) ||
             tell(t, "trained") || topt_training_save(t, argv[1]);
        if (rc && (!t || topt_training_speaks(t)))
            fprintf(stderr, "keep: %s\n", t ? topt_training_error(t) : "out of memory");
        topt_training_close(t);
    }
    return rc ? 1 : 0;
}
