/* slurm_job.c - see slurm_job.h.
 *
 * A job of Slurm whose nodes have GPUs of two kinds could ask for so many nodes with each feature
 * (--constraint=[a*4&b*4]); but then its ranks follow the names of nodes, whatever their GPUs are, and each
 * node gives as many GPUs.  Ranks of a heterogeneous job are in the order of its parts. */
#include "slurm_job.h"

#include <stdio.h>
#include <string.h>

#include "topt_component.h"
#include "topt_json.h"
#include "topt_text.h"

/* The group of the profile that is called so; NULL: none. */
static const json_t *group_of(const json_t *hw, const char *name)
{
    const json_t *group;
    size_t i;
    json_array_foreach(json_object_get(hw, "groups"), i, group)
    {
        if (!strcmp(topt_json_words_at(group, "name"), name))
            return group;
    }
    return NULL;
}

/* Has the job a task for each GPU, or one for each node, whose launcher starts a process for each GPU? */
static int by_gpu(const json_t *found)
{
    return !strcmp(topt_json_words_at(json_object_get(found, "job"), "framework"),
                   "topt");
}

/* A part of a heterogeneous job; 'each_gpu': a task for each GPU, else for each node. */
static void add_part(json_t *parts, struct topt_text *flags, const json_t *hw,
                     const char *group, int64_t gpus, int each_gpu)
{
    struct topt_component c = topt_component_of(group_of(hw, group), gpus);
    json_array_append_new(parts, json_pack("{s:s, s:I, s:I}", "group", group, "nodes",
                                           (json_int_t)c.nodes, "gpus_per_node",
                                           (json_int_t)c.per_node));
    topt_text_add(flags, "%s--nodes=%lld --gpus-per-node=%lld --ntasks-per-node=%lld",
                  flags->len ? " : " : "", (long long)c.nodes, (long long)c.per_node,
                  (long long)(each_gpu ? c.per_node : 1));
}

/* The parts of a heterogeneous job for a plan on several groups of GPUs, in the order of its ranks. */
static json_t *slurm_parts(const json_t *found, const json_t *hw)
{
    const json_t *stages = json_object_get(found, "stages"),
                 *list = stages ? stages : json_object_get(found, "groups"), *row, *next;
    struct topt_text flags = {0};
    json_t *parts = json_array(), *ret = NULL;
    int64_t gpus = 0;
    size_t i;
    json_array_foreach(list, i, row)
    {
        const char *key = stages ? "group" : "name", *name = topt_json_words_at(row, key);
        gpus += topt_json_whole_at(row, "gpus");
        next = json_array_get(list, i + 1); /* stages of one group are neighbours */
        if (next && !strcmp(topt_json_words_at(next, key), name))
            continue;
        add_part(parts, &flags, hw, name, gpus, by_gpu(found));
        gpus = 0;
    }
    if (!flags.oom)
        ret = json_pack("{s:O, s:s}", "parts", parts, "flags", flags.s ? flags.s : "");
    topt_text_fini(&flags);
    json_decref(parts);
    return ret;
}

int slurm_is_several(const json_t *found)
{
    return json_object_get(found, "choices") && !json_object_get(found, "group");
}

json_t *slurm_job(const json_t *found, const char *hw)
{
    if (slurm_is_several(found)) {
        json_t *doc = topt_json_parse(hw, strlen(hw), "the profile", NULL),
               *parts = slurm_parts(found, doc);
        json_decref(doc);
        return parts;
    }
    long long nodes = json_integer_value(json_object_get(found, "nodes"));
    long long per = json_integer_value(json_object_get(found, "gpus_per_node"));
    if (nodes < 1 || per < 1)
        return json_null();
    char flags[160];
    snprintf(flags, sizeof flags,
             "--nodes=%lld --gpus-per-node=%lld --ntasks-per-node=%lld", nodes, per,
             by_gpu(found) ? per : 1);
    return json_pack("{s:I, s:I, s:s}", "nodes", (json_int_t)nodes, "gpus_per_node",
                     (json_int_t)per, "flags", flags);
}
