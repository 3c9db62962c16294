/* component.c - see topt_component.h. */
#include "topt_component.h"

#include "topt_json.h"

struct topt_component topt_component_of(const json_t *group, int64_t gpus)
{
    int64_t each = topt_json_whole_at(group, "gpus_per_node");
    int64_t nodes = each > 0 ? (gpus + each - 1) / each : 1;
    nodes = nodes > 0 ? nodes : 1;
    return (struct topt_component){topt_json_words_at(group, "name"), nodes,
                                   gpus / nodes};
}
