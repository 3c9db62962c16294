/* value_classes.h - which of operators' values are distinguished, each partition once.
 *
 * A view numbers the values of an operator by what a factor distinguishes.  Of a hundred
 * alike blocks views are asked for with the same arrays, and so come out as the same:
 * what one of them took time for, the others find.  Whoever compares views may compare
 * their arrays' addresses first.
 *
 * Internal to this folder.  Thread safety: one owner.  Views live in the owner's arena;
 * arrays that they were made of must live as long. */
#ifndef TOPT_SEARCH_VALUE_CLASSES_H
#define TOPT_SEARCH_VALUE_CLASSES_H

#include "topt_arena.h"

#include "topt_error.h"

/* The values of an operator that a factor tells apart. */
struct view {
    int n;             /* classes */
    const int32_t *of; /* class by value of the operator */
};

struct view_slot; /* one that was made, and of what */
struct views {
    struct topt_arena *arena;
    struct view_slot *slot;
    size_t n, cap;
};

void topt_value_classes_init(struct views *v, struct topt_arena *arena);
void topt_value_classes_fini(struct views *v);

/* Classes of n values: one for all (none of no values), and one for each.  All of these
 * return 0, or -1 where memory is short. */
int topt_value_classes_one(struct views *v, int n, struct view *ret) TOPT_MUST_CHECK;
int topt_value_classes_all(struct views *v, int n, struct view *ret) TOPT_MUST_CHECK;
/* Refine the classes by 'by' (class by value), in the order of their first values. */
int topt_value_classes_split(struct views *v, int n, const struct view *view,
                             const int32_t *by, struct view *ret) TOPT_MUST_CHECK;
/* Several of n configurations may be one of 'nvalues' values: 'classes' by value, from those by
 * configuration. */
int topt_value_classes_of_values(struct views *v, int n, const int32_t *value,
                                 int nvalues, const int32_t *class_of, int classes,
                                 struct view *ret) TOPT_MUST_CHECK;

/* Split the classes in 'id' (n of them) by 'by': values stay together where both agree.
 * Classes are numbered by first occurrence.  Returns their number, or -1 (memory). */
int topt_refine(int32_t *id, int n, const int32_t *by);

#endif
