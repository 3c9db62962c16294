/* naming.h - inside checkpoints: which row of which tensor of a Hugging Face folder a row
 * of a parameter is. */
#ifndef TOPT_CHECKPOINT_NAMING_H
#define TOPT_CHECKPOINT_NAMING_H

#include "tensor_file.h"
#include "tensors.h"

/* How the names of an adapter's two operators end. */
#define TOPT_ADAPTER_FIRST  ".lora_a"
#define TOPT_ADAPTER_SECOND ".lora_b"

/* A tensor there. */
struct topt_name_piece {
    char name[200];
    int op, operand; /* of the config's model */
    enum topt_weight_piece piece;
    int64_t parts, expert;
    int ndim;
    int64_t dim[TOPT_WEIGHT_RANK];
};

/* Two maps beside one module of a checkpoint (LoRA): what it adds to a row of the module is
 * a row of 'b' times 'a'.  The module is rows 'offset' to 'offset' + 'unit' of each 'total'
 * rows of the operand 'weight' of the operator 'parent'. */
struct topt_adapter {
    int a, b, parent, weight; /* operators of the config's model; an operand */
    int64_t offset, unit, total;
};

struct topt_naming {
    struct topt_model *model; /* of the config, with the program's adapters */
    struct topt_name_piece *piece;
    int n, cap, oom;
    int base; /* pieces before those of adapters */
    struct topt_adapter *adapter;
    int nadapters, adapters_cap;
    struct topt_tensor_file *file;
    int nfiles;
    double scale; /* of what is read of second maps */
    int habits;   /* of the family */
};

/* Row 'row' of a parameter: row 'at' of tensor 'piece' (a column, where that is turned);
 * 'piece' NULL: there is none. */
struct topt_name_source {
    const struct topt_name_piece *piece;
    int64_t at;
};

/* The names of a config that is of the program's model, and what the program trains
 * ('*ret_stay', the caller's); INVAL where it is of another model. */
int topt_naming_open(struct topt_naming *n, const struct topt_program *p,
                     const char *config, struct topt_stay **ret_stay, int *ret_n,
                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_naming_close(struct topt_naming *n); /* a zeroed one, too */

/* The config's operator of the same name as a buffer's; -1: none. */
int topt_naming_op(const struct topt_naming *n, const struct topt_program *p, int buffer);
struct topt_name_source topt_naming_source(const struct topt_naming *n, int op,
                                           int operand, int64_t row);
/* Rows of all parameters that a tensor of that name holds, one after the other. */
int64_t topt_naming_rows(const struct topt_naming *n, const char *name);
/* May its tensor hold other parameters, too? */
int topt_naming_is_shared(const struct topt_name_piece *p);
/* What is added to a number from there. */
double topt_naming_offset(const struct topt_naming *n, const struct topt_name_piece *p);

/* Is the operator one of an adapter's? */
int topt_naming_is_adapter(const struct topt_naming *n, int op);
/* The adapter whose second map is operator 'op', or NULL. */
const struct topt_adapter *topt_naming_second(const struct topt_naming *n, int op);
/* Row 'row' of a second map, among the rows of the operator that it is beside. */
int64_t topt_naming_adapter_row(const struct topt_adapter *a, int64_t row);
/* That row there. */
struct topt_name_source topt_naming_adapter_source(const struct topt_naming *n,
                                                   const struct topt_adapter *a,
                                                   int64_t row);

/* A piece more; -1 without memory. */
int topt_naming_add(void *naming, const struct topt_weight *w);

#endif
