/* handwritten.c - data parallel training of a small network as one would write it by
 * hand, with MPI and BLAS alone: what `topt run` is held against.
 *
 * usage: mpirun -n R handwritten WIDTH BATCH STEPS
 *
 * Features, two hidden layers of as many, ten classes; biases, ReLU, cross entropy,
 * momentum.  All gradients lie in one block, which is summed by one all-reduce.  Prints the
 * fastest and the median step of rank 0, in microseconds. */
#include <cblas.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 3, CLASSES = 10 };

struct net {
    int rows, width[LAYERS + 1]; /* rows of this rank */
    int n;                       /* parameters */
    float *weight, *gradient, *velocity;
    int at[LAYERS]; /* where a layer's matrix lies, then its bias */
    float *x[LAYERS + 1], *dx[LAYERS + 1];
    int *label;
};

static float *floats(size_t n)
{
    float *p = calloc(n, sizeof *p);
    if (!p)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return p;
}

static void make(struct net *t, int width, int rows, int rank)
{
    t->rows = rows;
    for (int l = 0; l <= LAYERS; l++)
        t->width[l] = l < LAYERS ? width : CLASSES;
    for (int l = 0; l < LAYERS; l++) {
        t->at[l] = t->n;
        t->n += (t->width[l] + 1) * t->width[l + 1];
    }
    t->weight = floats((size_t)t->n);
    t->gradient = floats((size_t)t->n);
    t->velocity = floats((size_t)t->n);
    for (int l = 0; l <= LAYERS; l++) {
        t->x[l] = floats((size_t)rows * (size_t)t->width[l]);
        t->dx[l] = floats((size_t)rows * (size_t)t->width[l]);
    }
    t->label = calloc((size_t)rows, sizeof *t->label);
    for (int i = 0; i < t->n; i++)
        t->weight[i] = (float)((i * 7919 % 1000) - 500) * 1e-4f;
    for (int i = 0; i < rows * width; i++)
        t->x[0][i] = (float)((i * 31 + rank * 17) % 100) * 0.01f;
    for (int i = 0; i < rows && t->label; i++)
        t->label[i] = (i * 3 + rank) % CLASSES;
}

static void forward(struct net *t)
{
    for (int l = 0; l < LAYERS; l++) {
        int in = t->width[l], out = t->width[l + 1];
        const float *w = t->weight + t->at[l], *b = w + in * out;
        float *y = t->x[l + 1];
        for (int r = 0; r < t->rows; r++)
            memcpy(y + r * out, b, (size_t)out * sizeof *y);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, t->rows, out, in, 1, t->x[l],
                    in, w, in, 1, y, out);
        for (int i = 0; i < t->rows * out && l + 1 < LAYERS; i++)
            y[i] = y[i] > 0 ? y[i] : 0;
    }
}

/* Slopes of the logits, over all samples of all ranks; this rank's part of the loss. */
static double loss_of(struct net *t, int samples)
{
    double sum = 0;
    for (int r = 0; r < t->rows; r++) {
        const float *x = t->x[LAYERS] + r * CLASSES;
        float *d = t->dx[LAYERS] + r * CLASSES, most = x[0], total = 0;
        for (int c = 1; c < CLASSES; c++)
            most = x[c] > most ? x[c] : most;
        for (int c = 0; c < CLASSES; c++)
            total += d[c] = expf(x[c] - most);
        sum += log((double)total) - (double)(x[t->label[r]] - most);
        for (int c = 0; c < CLASSES; c++)
            d[c] = (d[c] / total - (float)(c == t->label[r])) / (float)samples;
    }
    return sum / samples;
}

static void backward(struct net *t)
{
    for (int l = LAYERS - 1; l >= 0; l--) {
        int in = t->width[l], out = t->width[l + 1];
        float *dw = t->gradient + t->at[l], *db = dw + in * out, *dy = t->dx[l + 1];
        for (int i = 0; i < t->rows * out && l + 1 < LAYERS; i++)
            dy[i] = t->x[l + 1][i] > 0 ? dy[i] : 0;
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, in, t->rows, 1, dy, out,
                    t->x[l], in, 0, dw, in);
        memset(db, 0, (size_t)out * sizeof *db);
        for (int r = 0; r < t->rows; r++)
            for (int c = 0; c < out; c++)
                db[c] += dy[r * out + c];
        if (l)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, t->rows, in, out, 1,
                        dy, out, t->weight + t->at[l], in, 0, t->dx[l], in);
    }
}

static double step(struct net *t, int samples)
{
    forward(t);
    double loss = loss_of(t, samples);
    backward(t);
    MPI_Allreduce(MPI_IN_PLACE, t->gradient, t->n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &loss, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < t->n; i++) {
        t->velocity[i] = 0.9f * t->velocity[i] + t->gradient[i];
        t->weight[i] -= 0.02f * t->velocity[i];
    }
    return loss;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    openblas_set_num_threads(1);
    int width = argc == 4 ? atoi(argv[1]) : 0, batch = argc == 4 ? atoi(argv[2]) : 0;
    int steps = argc == 4 ? atoi(argv[3]) : 0;
    if (width < 1 || steps < 1 || batch < ranks || batch % ranks) {
        MPI_Finalize();
        return 2;
    }
    struct net t = {.n = 0};
    double *took = calloc((size_t)steps, sizeof *took), loss = 0;
    make(&t, width, batch / ranks, rank);
    for (int i = 0; i < steps && took; i++) {
        double begin = MPI_Wtime();
        loss = step(&t, batch);
        took[i] = MPI_Wtime() - begin;
    }
    if (took)
        qsort(took, (size_t)steps, sizeof *took, by_value);
    if (!rank && took)
        printf("%.1f %.1f loss %.4f\n", took[0] * 1e6, took[steps / 2] * 1e6, loss);
    MPI_Finalize();
    return 0;
}
