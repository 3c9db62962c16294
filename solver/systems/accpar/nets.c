/* nets.c - the networks of AccPar's evaluation, by their published layers.
 *
 * AlexNet as in Krizhevsky's "One weird trick" (torchvision's alexnet), VGG configurations A, B,
 * D and E (Simonyan and Zisserman 2014), ResNet 18, 34 and 50 (He et al. 2015).  A layer is a
 * convolution or a product with what follows it up to the next one; pooling makes the map that
 * the next layer reads smaller than the one that is written. */
#include "topt_accpar.h"

#include <stdio.h>
#include <string.h>

/* A network under construction: the layer whose output goes on, and the sides of maps. */
struct build {
    struct topt_accpar_net *net;
    int last;     /* -1: the image */
    int channels; /* of what goes on */
    int side;     /* of its map */
};

static void edge(struct topt_accpar_net *net, int from, int to, int joins)
{
    if (from >= 0)
        net->edge[net->nedges++] = (struct topt_accpar_edge){from, to, joins};
}

/* Reads layer 'from', whose map is 'side' wide. */
static int add_conv(struct topt_accpar_net *net, int from, int in, int out, int kernel,
                    int side, int stride)
{
    int i = net->n++;
    double made = side / stride;
    struct topt_accpar_layer *l = &net->layer[i];
    *l = (struct topt_accpar_layer){.conv = 1,
                                    .in = in,
                                    .out = out,
                                    .map_in = (double)side * side,
                                    .map_out = made * made,
                                    .kernel = (double)kernel * kernel};
    snprintf(l->name, sizeof l->name, "conv%d", i + 1);
    edge(net, from, i, 0);
    return i;
}

static void conv(struct build *b, int out, int kernel, int stride)
{
    b->last = add_conv(b->net, b->last, b->channels, out, kernel, b->side, stride);
    b->channels = out;
    b->side /= stride;
}

static void product(struct build *b, int out)
{
    struct topt_accpar_net *net = b->net;
    int i = net->n++;
    struct topt_accpar_layer *l = &net->layer[i];
    *l = (struct topt_accpar_layer){.in = (double)b->channels * b->side * b->side,
                                    .out = out,
                                    .map_in = 1,
                                    .map_out = 1,
                                    .kernel = 1};
    snprintf(l->name, sizeof l->name, "fc%d", i + 1);
    edge(net, b->last, i, 0);
    b->last = i;
    b->channels = out;
    b->side = 1;
}

static void classifier(struct build *b)
{
    product(b, 4096);
    product(b, 4096);
    product(b, 1000);
}

static void alexnet(struct build *b, const int *depth)
{
    (void)depth;
    conv(b, 64, 11, 4);
    b->net->layer[0].map_out = 55 * 55;
    b->side = 27;
    conv(b, 192, 5, 1);
    b->side = 13;
    conv(b, 384, 3, 1);
    conv(b, 256, 3, 1);
    conv(b, 256, 3, 1);
    b->side = 6;
    classifier(b);
}

/* 'depth': convolutions between two poolings. */
static void vgg(struct build *b, const int *depth)
{
    static const int width[] = {64, 128, 256, 512, 512};
    for (int stage = 0; stage < 5; stage++) {
        for (int i = 0; i < depth[stage]; i++)
            conv(b, width[stage], 3, 1);
        b->side /= 2;
    }
    classifier(b);
}

static void resnet(struct build *b, const int *depth)
{
    static const int width[] = {64, 128, 256, 512};
    int bottleneck = depth[4];
    conv(b, 64, 7, 2);
    b->side /= 2;
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < depth[stage]; i++) {
            int from = b->last, stride = stage && !i ? 2 : 1;
            int out = bottleneck ? 4 * width[stage] : width[stage];
            /* A shortcut through a convolution where the block changes channels or map. */
            if (out != b->channels)
                from = add_conv(b->net, from, b->channels, out, 1, b->side, stride);
            if (bottleneck) {
                conv(b, width[stage], 1, 1);
                conv(b, width[stage], 3, stride);
                conv(b, 4 * width[stage], 1, 1);
            } else {
                conv(b, width[stage], 3, stride);
                conv(b, width[stage], 3, 1);
            }
            edge(b->net, from, b->last, 1);
        }
    b->side = 1;
    product(b, 1000);
}

static const struct {
    const char *name;
    void (*make)(struct build *b, const int *depth);
    int depth[5];
} nets[] = {
    {"alexnet", alexnet, {0}},
    {"vgg11", vgg, {1, 1, 2, 2, 2}},
    {"vgg13", vgg, {2, 2, 2, 2, 2}},
    {"vgg16", vgg, {2, 2, 3, 3, 3}},
    {"vgg19", vgg, {2, 2, 4, 4, 4}},
    {"resnet18", resnet, {2, 2, 2, 2, 0}},
    {"resnet34", resnet, {3, 4, 6, 3, 0}},
    {"resnet50", resnet, {3, 4, 6, 3, 1}},
};
enum { NETS = sizeof nets / sizeof *nets };

const char *const *topt_accpar_nets(void)
{
    static const char *const names[] = {"alexnet",  "vgg11",    "vgg13",
                                        "vgg16",    "vgg19",    "resnet18",
                                        "resnet34", "resnet50", NULL};
    return names;
}

int topt_accpar_net(const char *name, double batch, struct topt_accpar_net *ret,
                    struct topt_error *err)
{
    *ret = (struct topt_accpar_net){.batch = batch};
    for (int i = 0; i < NETS; i++)
        if (!strcmp(nets[i].name, name)) {
            struct build b = {.net = ret, .last = -1, .channels = 3, .side = 224};
            snprintf(ret->name, sizeof ret->name, "%s", name);
            nets[i].make(&b, nets[i].depth);
            return 0;
        }
    return topt_fail(err, TOPT_ERR_NOTFOUND,
                     "unknown network '%.30s' (alexnet, vgg11, vgg13, vgg16, vgg19, "
                     "resnet18, resnet34 or resnet50)",
                     name);
}
