/* table_points.c - the points of tables that were made, entry after entry. */
#include "table_points.h"

struct run topt_entry_points(const struct maker *k, const struct table *t, int64_t entry)
{
    if (t->leaf) {
        const uint32_t *first = &t->first[entry - t->first_entry];
        return (struct run){t->cost + first[0], first[1] - first[0], first[0], entry};
    }
    return (struct run){k->merge.cost + k->first[entry], k->count[entry], k->first[entry],
                        entry};
}
