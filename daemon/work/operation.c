/* operation.c - see operation.h. */
#include "operation.h"

#include <stdlib.h>

struct operation *operation_create(enum operation_kind kind)
{
    struct operation *o = calloc(1, sizeof *o);
    if (o)
        o->kind = kind;
    return o;
}

void operation_destroy(void *operation)
{
    struct operation *o = operation;
    if (!o)
        return;
    char *const owned[] = {o->body,          o->name,       o->model_id, o->model_name,
                           o->model,         o->hw_id,      o->hw,       o->text,
                           o->found.plan_id, o->found.plan, o->found.doc};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    free(o);
}
