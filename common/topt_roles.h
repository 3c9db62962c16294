/* topt_roles.h - what part of a network an operator is, as far as tensor parallelism asks.
 *
 * One table for the format of models, the planner and what is written for PyTorch
 * (topt_apply.py).  Macros only.  A row is
 *
 *     X(ID, name, SPLIT, MODULES)
 *
 * ID, name   for enumerators; "role" of an operator in topt-model/1
 * SPLIT      what tensor parallelism does to its weight (Shoeybi et al. 2019):
 *            COLUMN  splits the features that it makes, and heads with them
 *            ROW     splits the features that it reads, and leaves a sum
 *            TABLE   splits the rows of a table, the vocabulary, and leaves a sum
 *            HEAD    splits the vocabulary that it makes logits of
 *            EXPERT  splits the inner features of each expert, and leaves a sum
 *            WHOLE   every rank has all of it
 * MODULES    the last parts of the names that transformers' models have for such linear modules
 *            of a block, each followed by a space: what topt_apply.py splits by COLUMN and ROW */
#ifndef TOPT_ROLES_H
#define TOPT_ROLES_H

/* clang-format off */
#define TOPT_ROLES(X)                                                            \
    X(Q, "q", COLUMN, "q_proj ")                                                 \
    X(K, "k", COLUMN, "k_proj ")                                                 \
    X(V, "v", COLUMN, "v_proj ")                                                 \
    X(KV, "kv", COLUMN, "")                                                      \
    X(QKV, "qkv", COLUMN, "query_key_value ")                                    \
    X(GATE, "gate", COLUMN, "gate_proj ")                                        \
    X(UP, "up", COLUMN, "up_proj fc1 fc_in dense_h_to_4h ")                      \
    X(GATE_UP, "gate_up", COLUMN, "")                                            \
    X(OUT, "out", ROW, "o_proj out_proj dense ")                                 \
    X(DOWN, "down", ROW, "down_proj fc2 fc_out dense_4h_to_h ")                  \
    X(EMBEDDING, "embedding", TABLE, "")                                         \
    X(HEAD, "head", HEAD, "")                                                    \
    X(EXPERT, "expert", EXPERT, "")                                              \
    X(ROUTER, "router", WHOLE, "")                                               \
    X(WHOLE, "whole", WHOLE, "")
/* clang-format on */

enum topt_op_role {
    TOPT_ROLE_NONE, /* nothing is said of the operator */
#define X(id, name, split, modules) TOPT_ROLE_##id,
    TOPT_ROLES(X)
#undef X
        TOPT_ROLE_COUNT
};

enum topt_role_split {
    TOPT_BY_NOTHING, /* of TOPT_ROLE_NONE */
    TOPT_BY_COLUMN,
    TOPT_BY_ROW,
    TOPT_BY_TABLE,
    TOPT_BY_HEAD,
    TOPT_BY_EXPERT,
    TOPT_BY_WHOLE
};

#endif
