/* boards.c - the boards of a hardware profile, group by group. */
#include "topt_accpar.h"
#include "topt_hw.h"

#include <stdio.h>
#include <string.h>

/* The type that most of a step is computed in: 16 bits where the device has them. */
static enum topt_dtype type_of(const struct topt_hw *hw)
{
    return topt_hw_has_dtype(hw, TOPT_BF16) ? TOPT_BF16 : TOPT_F32;
}

int topt_accpar_boards(const struct topt_hw *hw, const char *group,
                       struct topt_accpar_boards ret[TOPT_ACCPAR_KINDS], int *ret_kinds,
                       double *ret_element_bytes, struct topt_error *err)
{
    int groups = topt_hw_groups(hw), n = 0;
    enum topt_dtype type = type_of(hw);
    for (int i = 0; i < (groups ? groups : 1); i++) {
        const struct topt_hw *g = topt_hw_group(hw, i);
        int per_node = topt_hw_gpus_per_node(g);
        if (group && strcmp(group, topt_hw_name(g)))
            continue;
        if (n == TOPT_ACCPAR_KINDS)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s has %d groups; AccPar cuts between two kinds of boards",
                             topt_hw_name(hw), groups);
        ret[n] = (struct topt_accpar_boards){.count = topt_hw_max_nodes(g) * per_node,
                                             .flops = topt_hw_peak(g, type),
                                             .bytes_per_second =
                                                 topt_hw_network(g) / per_node};
        snprintf(ret[n].name, sizeof ret[n].name, "%s", topt_hw_device(g));
        n++;
    }
    if (!n)
        return topt_fail(err, TOPT_ERR_NOTFOUND, "%s has no group '%.60s'",
                         topt_hw_name(hw), group);
    *ret_kinds = n;
    *ret_element_bytes = topt_dtype_bytes(type);
    return 0;
}
