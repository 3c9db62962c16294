/* degrees.c - what is chosen once for the whole model. */
#include "degrees.h"
#include "topt_choices.h"

struct topt_degrees topt_degrees_none(void)
{
    return (struct topt_degrees){.micro_batches = 1,
                                 .data = 1,
                                 .tensor = 1,
                                 .context = 1,
                                 .expert = 1,
                                 .expert_tensor = 1,
                                 .stages = 1,
                                 .virtual_stages = 1};
}

int topt_degrees_order(const struct topt_degrees *a, const struct topt_degrees *b)
{
    if (a->micro_batches != b->micro_batches)
        return a->micro_batches < b->micro_batches ? -1 : 1;
    if (a->data != b->data)
        return a->data - b->data;
    if (a->context != b->context)
        return a->context - b->context;
    if (a->expert != b->expert)
        return a->expert - b->expert;
    if (a->expert_tensor != b->expert_tensor)
        return a->expert_tensor - b->expert_tensor;
    if (a->level != b->level)
        return a->level - b->level;
    return a->recompute != b->recompute ? a->recompute - b->recompute
                                        : a->shard - b->shard;
}

void topt_degrees_by_operator(struct topt_degrees *d)
{
    d->data = d->tensor = d->context = d->expert = d->expert_tensor = 1;
    d->level = d->shard = 0;
}

int topt_stage_grid(int stages, int *nodes, int *per_node)
{
    int parts = *nodes % stages ? stages / *nodes : 1;
    if (parts == 1 && *nodes % stages == 0) {
        *nodes /= stages;
        return 1;
    }
    if (stages % *nodes || *per_node % parts)
        return 0;
    *nodes = 1;
    *per_node /= parts;
    return 1;
}

/* As many axes as have so many devices. */
static int axes_of(const struct topt_mesh *mesh, int64_t devices)
{
    int axes = 0;
    for (int64_t n = 1; axes < mesh->naxes && n < devices; axes++)
        n *= mesh->size[axes];
    return axes;
}

int topt_degrees_data_axes(const struct topt_mesh *mesh, const struct topt_degrees *d)
{
    return axes_of(mesh, d->data);
}

int topt_degrees_shard(const struct topt_degrees *d)
{
    return d->shard ? d->shard : d->data;
}

int topt_degrees_whole_axes(const struct topt_mesh *mesh, const struct topt_degrees *d)
{
    return axes_of(mesh, d->data / topt_degrees_shard(d));
}

int topt_degrees_first_tensor_axis(const struct topt_mesh *mesh,
                                   const struct topt_degrees *d)
{
    return axes_of(mesh, (int64_t)d->data * d->context);
}

struct topt_expert_axes topt_degrees_expert_axes(const struct topt_mesh *mesh,
                                                 const struct topt_degrees *d)
{
    struct topt_expert_axes n = {0, 0};
    int cut = topt_degrees_first_tensor_axis(mesh, d);
    int64_t left = d->expert, rest = d->tensor;
    while (left > 1 && rest > d->expert_tensor) {
        int size = mesh->size[cut + n.tensor++];
        rest /= size;
        left /= size;
    }
    while (left > 1)
        left /= mesh->size[cut - 1 - n.data++];
    return n;
}

enum topt_space topt_space_resolve(enum topt_space s, int devices)
{
    if (s != TOPT_SPACE_AUTO)
        return s;
    return devices <= 16 ? TOPT_SPACE_FULL : TOPT_SPACE_CANONICAL;
}
