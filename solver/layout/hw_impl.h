/* hw_impl.h - what 'topt hw' and the tests see beside topt_hw.h; not for other
 * folders. */
#ifndef TOPT_HW_IMPL_H
#define TOPT_HW_IMPL_H

#include <jansson.h>
#include <stddef.h>

#include "topt_hw.h"

/* The text of a shipped profile, or NULL.  Static. */
const char *topt_hw_shipped_text(const char *name, size_t *ret_len);

/* No shipped profile has that name: fails with 'code', and with the one that may be
 * meant. */
void topt_hw_refuse_name(const char *name, enum topt_err code, struct topt_error *err);

/* hw_inherit.c: a document that says 'like' which shipped profile it is becomes a whole
 * one, in place.  INVAL where there is no such profile. */
int topt_hw_expand(json_t **doc, struct topt_error *err) TOPT_MUST_CHECK;

/* hw_inherit.c: the rows of a table of a profile's device, of which the profile may also name a
 * shipped one that has them.  New reference to an array, empty where there are none; NULL with an
 * error where 'table' is something else or has more than 'most'. */
json_t *topt_hw_rows(const json_t *device, const char *table, int most,
                     struct topt_error *err);

/* hw_inherit.c: remove the curves of groups with more nodes, or devices of a node, than 'doc'
 * says there are. */
void topt_hw_drop_larger(json_t *base, const json_t *doc);

/* hw_groups.c: the links of a level, "node" or "cluster", in a profile's document; NULL: none. */
const json_t *topt_hw_link(const json_t *doc, const char *level);

/* hw_groups.c: the value of a section's member, or of one of a member's members after a dot;
 * NULL: none. */
json_t *topt_hw_figure(const json_t *section, const char *name);

/* hw_groups.c: a document whose groups are whole profiles gets the fields of a cluster whose
 * devices are all like the least of them, where it does not have those. */
int topt_hw_join_groups(json_t *doc, struct topt_error *err) TOPT_MUST_CHECK;

/* hw_figures.c: the figures that the profile says are assumed, as "device.launch_ns" or "cluster.latency_ns".  New
 * reference to an array of strings. */
json_t *topt_hw_assumed(const struct topt_hw *hw);
/* The profile with one of these times 'factor', a table's rates or shares all of them; its curves stay. */
struct topt_hw *topt_hw_scaled(const struct topt_hw *hw, const char *figure,
                               double factor, struct topt_error *err) TOPT_MUST_CHECK;

/* The source of topt_hw_collective_ns: "measured", "all_reduce 1x8" (the curve of that
 * group, moved by the two-level model), "two-level", or "two-level+curve" where the part
 * inside the nodes comes from a curve.  Returns 'buf'. */
const char *topt_hw_basis(const struct topt_hw *hw, enum topt_collective c,
                          struct topt_group g, char *buf, size_t size);

/* The share of the peak that large products of the type reach by device.products; 0: it has no row. */
double topt_hw_product_share(const struct topt_hw *hw, enum topt_dtype t);

/* hw_check.c: sentences about what can't well be so, and about what was not measured.
 * New references to arrays of strings, empty where there is nothing to say. */
json_t *topt_hw_warnings(const struct topt_hw *hw);
json_t *topt_hw_missing(const struct topt_hw *hw);

/* hw_check.c: the same in a few words: "bf16", "products", "attention", "collectives", or
 * "collectives between nodes".  New reference to an array of strings. */
json_t *topt_hw_lacks(const struct topt_hw *hw);

/* A measured curve held against itself. */
struct topt_hw_curve_check {
    enum topt_collective kind;
    struct topt_group group;
    int points;
    int lowered;       /* points that were slower than one of more bytes */
    double mean_error; /* of predicting each inner point from its neighbours, relative */
    double rate_error; /* of bytes over the links' rates, mean over points below 1 MiB */
};

/* Curve 'i' of the profile; 0 past the last one. */
int topt_hw_curve_check(const struct topt_hw *hw, int i, struct topt_hw_curve_check *ret);

#endif
