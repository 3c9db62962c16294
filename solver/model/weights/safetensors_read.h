/* safetensors_read.h - what the headers of weights say.  Private to model/. */
#ifndef TOPT_SAFETENSORS_READ_H
#define TOPT_SAFETENSORS_READ_H

#include "topt_arena.h"
#include "topt_model.h"

enum { TOPT_WEIGHT_TYPES = 24 };

/* Tensors by name; the arena holds the names.  'bytes' of each type, in the order of
 * topt_weight_type(); 'total' is what an index says of files that are not here. */
struct topt_weights {
    struct topt_arena *arena;
    struct topt_weight *at;
    int n, cap, files;
    int64_t bytes[TOPT_WEIGHT_TYPES], total;
};

/* The name of a type, or NULL past the last one. */
const char *topt_weight_type(int i);

int topt_weights_add(struct topt_weights *w, const struct topt_weight *t,
                     struct topt_error *err) TOPT_MUST_CHECK;
double topt_weight_elements(const struct topt_weight *t);

/* All *.safetensors of a folder and their index, of which a file that is missing is
 * named; or one file.  None is well: then nothing is in 'ret', whose arena is the
 * caller's. */
int topt_weights_read(const char *dir, struct topt_weights *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
int topt_weights_read_file(const char *dir, const char *leaf, struct topt_weights *ret,
                           struct topt_error *err) TOPT_MUST_CHECK;

#endif
