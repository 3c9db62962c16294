/* own.c - an operator of the program's own beside those of the table: by the installed library.
 *
 *     cc own.c $(pkg-config --cflags --libs topt-runtime) -lm -o own
 *     mpirun -n 2 ./own FOLDER
 *
 * A sample's class is the ring around (0, 0) that it lies in.  The operator makes of a point how
 * near it lies to rings whose radii are learnt. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <topt.h>

enum { BATCH = 32, RINGS = 3 };

/* y[k] = e^-(r - w[k])^2 of a point whose distance from (0, 0) is r. */
static void forward(void *ctx, const struct topt_own_positions *p)
{
    const float *x = p->x, *w = p->w;
    float *y = p->y;
    (void)ctx;
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t k = 0; k < p->outputs; k++) {
            float d = hypotf(x[2 * i], x[2 * i + 1]) - w[k];
            y[i * p->outputs + k] = expf(-d * d);
        }
}

static void backward(void *ctx, const struct topt_own_positions *p)
{
    const float *x = p->x, *w = p->w, *dy = p->dy;
    float *dx = p->dx, *dw = p->dw;
    (void)ctx;
    for (int64_t i = 0; i < p->n; i++) {
        float r = hypotf(x[2 * i], x[2 * i + 1]), by_r = 0;
        for (int64_t k = 0; k < p->outputs; k++) {
            float d = r - w[k], slope = -2 * d * expf(-d * d) * dy[i * p->outputs + k];
            by_r += slope;
            if (dw)
                dw[k] -= slope;
        }
        for (int j = 0; dx && j < 2; j++)
            dx[2 * i + j] = r > 0 ? by_r * x[2 * i + j] / r : 0;
    }
}

static const struct topt_own_operator rings = {.outputs = RINGS,
                                               .parameters = RINGS,
                                               .deviation = 1,
                                               .flops = 8 * RINGS,
                                               .forward = forward,
                                               .backward = backward};

static int fill(void *ctx, const char *name, int64_t step, int64_t first, int64_t n,
                void *numbers)
{
    (void)ctx;
    for (int64_t i = 0; i < n; i++) {
        int64_t sample = step * BATCH + first + i;
        float r = 0.5f + (float)(sample % RINGS), turn = 2.4f * (float)sample;
        if (!strcmp(name, "loss")) {
            ((int32_t *)numbers)[i] = (int32_t)(sample % RINGS);
        } else {
            ((float *)numbers)[2 * i] = r * cosf(turn);
            ((float *)numbers)[2 * i + 1] = r * sinf(turn);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    double loss = 0, right = 0, radius[RINGS];
    int rc = argc != 2;
    for (int again = 0; again < 2 && !rc;
         again++) { /* the second goes on from the first */
        struct topt_training *t = topt_training_open(&argc, &argv, "rings", BATCH, 1);
        topt_training_placeholder(t, "point", 2);
        topt_training_own(t, "rings", "point", &rings);
        topt_training_operator(t, "linear", "classes", "rings", "{\"features\": 3}");
        topt_training_loss(t, "cross_entropy", "classes");
        topt_training_optimizer(t, "adam", 0.1);
        topt_training_find_strategy(t, "lab-cpu", 0);
        topt_training_build_from(t, fill, NULL, 1);
        rc = (again && topt_training_load(t, argv[1])) ||
             topt_training_run(t, 400, NULL) ||
             topt_training_evaluate_from(t, fill, NULL, 2, &loss, &right) ||
             topt_training_parameter(t, "rings.p", radius) ||
             topt_training_save(t, argv[1]);
        if (rc && topt_training_speaks(t))
            fprintf(stderr, "own: %s\n", topt_training_error(t));
        if (!rc && !topt_training_rank(t))
            printf("loss %.4f, %.2f of the labels met, first radius %.4f\n", loss, right,
                   radius[0]);
        topt_training_close(t);
    }
    return rc;
}
