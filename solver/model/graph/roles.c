/* roles.c - the names of the roles of operators (common/topt_roles.h). */
#include "topt_model.h"
#include "topt_text.h"

#include <string.h>

static const struct {
    const char *name;
    enum topt_role_split split;
} roles[TOPT_ROLE_COUNT] = {[TOPT_ROLE_NONE] = {"", TOPT_BY_NOTHING},
#define X(id, name, split, modules) [TOPT_ROLE_##id] = {name, TOPT_BY_##split},
                            TOPT_ROLES(X)
#undef X
};

const char *topt_role_name(enum topt_op_role p)
{
    return roles[p].name;
}

enum topt_role_split topt_role_split(enum topt_op_role p)
{
    return roles[p].split;
}

int topt_role_fits(enum topt_op_role role, const char *kind)
{
    static const char *const takes[][3] = {
        [TOPT_BY_COLUMN] = {"linear"},
        [TOPT_BY_ROW] = {"linear"},
        [TOPT_BY_TABLE] = {"embedding", "variable"},
        [TOPT_BY_HEAD] = {"linear"},
        [TOPT_BY_EXPERT] = {"experts"},
        [TOPT_BY_WHOLE] = {"linear", "variable", "embedding"},
    };
    for (int i = 0; role && i < 3 && takes[roles[role].split][i]; i++)
        if (!strcmp(takes[roles[role].split][i], kind))
            return 1;
    return !role || (roles[role].split == TOPT_BY_WHOLE && !strcmp(kind, "position"));
}

int topt_role_find(const char *name, enum topt_op_role *ret, struct topt_error *err)
{
    struct topt_text known = {0};
    for (int p = TOPT_ROLE_NONE + 1; p < TOPT_ROLE_COUNT; p++) {
        if (!strcmp(roles[p].name, name)) {
            topt_text_fini(&known);
            *ret = (enum topt_op_role)p;
            return 0;
        }
        topt_text_add(&known, " %s", roles[p].name);
    }
    topt_fail(err, TOPT_ERR_INVAL, "no role is \"%.40s\"; known are%s", name,
              known.s ? known.s : "");
    topt_text_fini(&known);
    return -1;
}
