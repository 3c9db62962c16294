/* topt_hw.h - hardware profiles: what a device computes and how groups of them talk.
 *
 * A profile describes a cluster of equal nodes of equal devices, or groups of such, in the
 * document "topt-hw/1" with the source of every figure.  Times come from measured curves
 * (interpolated in time between sizes) where the profile has one for the group, else
 * from a two-level model of links.  Thread safety: a loaded profile is only read, by
 * any number of threads. */
#ifndef TOPT_HW_H
#define TOPT_HW_H

#include <jansson.h>
#include <stdint.h>

#include "topt_error.h"
#include "topt_model.h"

enum topt_collective {
    TOPT_ALL_REDUCE,
    TOPT_ALL_GATHER,     /* bytes: the gathered result */
    TOPT_REDUCE_SCATTER, /* bytes: the input before scattering */
    TOPT_ALL_TO_ALL,     /* bytes: what one device holds (before = after) */
    TOPT_PERMUTE,        /* bytes: what one device sends to one other */
    TOPT_COLLECTIVE_COUNT
};
const char *topt_collective_name(enum topt_collective c);

/* How the groups of one collective lie on the cluster: 'per_node' members on each of
 * 'nodes' nodes (a group has nodes * per_node members), and 'siblings' groups with a
 * member on one node run at once and share its links. */
struct topt_group {
    int nodes, per_node, siblings;
};

enum topt_dtype {
    TOPT_F32,
    TOPT_F64,
    TOPT_BF16,
    TOPT_F16,
    TOPT_DTYPE_STORED, /* that tensors have; the others are of operands of products alone: */
    TOPT_F8 = TOPT_DTYPE_STORED, /* FP8 with a scale for a tensor or a row */
    TOPT_F8_BLOCK,               /* ... for 128 numbers */
    TOPT_MXF8,                   /* MXFP8 */
    TOPT_NVF4,                   /* NVFP4 */
    TOPT_DTYPE_COUNT
};
const char *topt_dtype_name(enum topt_dtype t);
int topt_dtype_bytes(enum topt_dtype t);
/* Has the type two bytes, so that training keeps a copy of parameters in f32? */
int topt_dtype_is_half(enum topt_dtype t);

/* Attention in one kernel, by who wrote it. */
enum topt_attention {
    TOPT_ATTENTION_FLASH2, /* Dao 2023 */
    TOPT_ATTENTION_FLASH1, /* Dao et al. 2022, in Triton */
    TOPT_ATTENTION_FLASH3,
    TOPT_ATTENTION_CUDNN,
    TOPT_ATTENTION_XFORMERS,
    TOPT_ATTENTION_OWN, /* of the module that topt run computes with on GPUs */
    TOPT_ATTENTION_COUNT
};
const char *topt_attention_name(enum topt_attention k);

/* One run of an attention kernel: its rate depends on these. */
struct topt_attention_run {
    enum topt_attention kernel;
    int64_t head, length; /* numbers of a head, and keys that a query may see */
    int causal, backward;
    const struct topt_op *op; /* NULL: not known */
};

struct topt_hw; /* opaque */

/* 'name' is a shipped profile or a file.  Owned by the caller. */
struct topt_hw *topt_hw_load(const char *name_or_path,
                             struct topt_error *err) TOPT_MUST_CHECK;
struct topt_hw *topt_hw_from_json(const json_t *doc,
                                  struct topt_error *err) TOPT_MUST_CHECK;
json_t *topt_hw_to_json(const struct topt_hw *hw); /* new reference, round-trips */
void topt_hw_destroy(struct topt_hw *hw);
/* The cluster with 'gpus' devices a node and as many more nodes, for a site whose nodes have four
 * of a profile's eight.  A node's share of the network shrinks likewise, and curves of groups that no
 * longer fit are left out.  USAGE where a node has fewer devices, or the profile has groups. */
struct topt_hw *topt_hw_of_nodes(const struct topt_hw *hw, int64_t gpus,
                                 struct topt_error *err) TOPT_MUST_CHECK;

/* NULL-ended names of the shipped profiles. */
const char *const *topt_hw_shipped(void);
/* The vendor of a shipped profile's devices, and the year in which they came out: "" and 0 where the
 * devices are no product, or no shipped profile has the name.  Static. */
const char *topt_hw_shipped_origin(const char *name, int *ret_year);

const char *topt_hw_name(const struct topt_hw *hw);
int topt_hw_max_nodes(const struct topt_hw *hw);
int topt_hw_gpus_per_node(const struct topt_hw *hw);
const char *topt_hw_device(const struct topt_hw *hw);
int64_t topt_hw_capacity_bytes(const struct topt_hw *hw); /* all that a device has */
/* The usable bytes: capacity less reserve. */
int64_t topt_hw_memory_bytes(const struct topt_hw *hw);
/* Its allocator rounds up to this. */
int64_t topt_hw_granule_bytes(const struct topt_hw *hw);
/* The workspace that PyTorch gives each handle of the device's BLAS. */
int64_t topt_hw_workspace_bytes(const struct topt_hw *hw);
/* The least and the most bytes of a device that driver context, libraries and collectives take
 * beside the program's buffers. */
void topt_hw_runtime_bytes(const struct topt_hw *hw, int64_t *ret_low, int64_t *ret_high);

/* The basis of a time, and the share of it by which it may be wrong. */
enum topt_basis {
    TOPT_BASIS_MEASURED, /* this very kernel or collective, at this size */
    TOPT_BASIS_INTERPOLATED, /* between measured sizes of this group, or of this cluster's kernels */
    TOPT_BASIS_SCALED, /* a curve of another group, another collective or smaller sizes */
    TOPT_BASIS_PUBLISHED, /* rates by size that others published of such a device */
    TOPT_BASIS_ANALYTIC,  /* rates of data sheets, assumed shares and a model of links */
    TOPT_BASIS_COUNT
};
const char *topt_basis_name(enum topt_basis b);
/* By what shares of a predicted time or memory the truth may be less, and more. */
struct topt_band {
    double below, above;
};
const struct topt_band *topt_hw_bands(const struct topt_hw *hw); /* of a time, by basis */

/* The thousandths of bytes that come and go in a step that a framework's allocator holds beside them and cannot
 * use: as measured on these devices, else the framework's own ('otherwise'); 0 if that is 0. */
int64_t topt_hw_allocator_permille(const struct topt_hw *hw, int64_t otherwise);

/* A device's share of its node's host; zeros where the profile says nothing. */
struct topt_hw_host {
    int64_t memory_bytes;
    double memory; /* bytes a second that the host reads and writes there */
    double link;   /* ... and of the device's own link to it, each way */
};
const struct topt_hw_host *topt_hw_host(const struct topt_hw *hw);

/* The share of a device's multiprocessors that a collective occupies while it runs. */
double topt_hw_collective_share(const struct topt_hw *hw);
/* How much of 'ns' of communication is hidden beside 'room' of computing, of which it takes that share. */
int64_t topt_hw_hidden_ns(const struct topt_hw *hw, int64_t ns, int64_t room);

/* Are the devices GPUs, which share no cores? */
int topt_hw_has_gpus(const struct topt_hw *hw);
/* Does the device have the type?  Where the profile has no figures of f16, those of bf16 stand for it; and for f8-block
 * those of mxf8, as Transformer Engine does it there, or of f8. */
int topt_hw_has_dtype(const struct topt_hw *hw, enum topt_dtype t);
/* Peak operations a second; 0 where the profile has no figures of the type itself. */
double topt_hw_peak(const struct topt_hw *hw, enum topt_dtype t);
/* ... those of the type that stands for it, as topt_hw_has_dtype() says; 0 where the device does not have it. */
double topt_hw_peak_taken(const struct topt_hw *hw, enum topt_dtype t);
/* Bytes a second of a node's network, 0 without one; and of a device inside its node. */
double topt_hw_network(const struct topt_hw *hw);
double topt_hw_bus(const struct topt_hw *hw);

/* The number of groups of unlike devices, 0 where all are alike; and each group as a profile of its
 * own.  A profile with groups describes devices that are all like the least of any group, which is what
 * equal shares of everything can count on. */
enum { TOPT_HW_GROUPS = 8 };
int topt_hw_groups(const struct topt_hw *hw);
const struct topt_hw *topt_hw_group(const struct topt_hw *hw, int i);
/* The group's devices; fewer than its nodes have where the profile says so ("gpus"). */
int topt_hw_group_devices(const struct topt_hw *hw, int i);
/* The whole cluster as devices of one group see it: with their own rates, memory and links inside a
 * node, and the slowest link between nodes.  It has no groups; the caller destroys it. */
struct topt_hw *topt_hw_among(const struct topt_hw *hw, int i, struct topt_error *err);
/* Variants of a profile with groups, which the caller destroys.
 * This one has as many devices as all groups together; each is a device of group 'i' with 'memory' usable bytes. */
struct topt_hw *topt_hw_all_like(const struct topt_hw *hw, int i, int64_t memory,
                                 struct topt_error *err);
/* Its groups in this or the reverse order, a device of group i with memory[i] usable bytes. */
struct topt_hw *topt_hw_ordered(const struct topt_hw *hw, int reverse,
                                const int64_t *memory, struct topt_error *err);
/* The profile without its groups, each device with 'more' bytes of memory added. */
struct topt_hw *topt_hw_with_memory(const struct topt_hw *hw, int64_t more,
                                    struct topt_error *err);
/* Is each group made of parts of so many devices, each within a node or of whole nodes like the other parts? */
int topt_hw_groups_made_of(const struct topt_hw *hw, int devices);
/* Peak operations a second of a device, in the mean of all groups. */
double topt_hw_mean_peak(const struct topt_hw *hw, enum topt_dtype t);
/* Nanoseconds in which a group sends 'bytes' to other groups and receives as many, in so many steps one
 * after the other. */
int64_t topt_hw_between_ns(const struct topt_hw *hw, int64_t bytes, int steps);

struct topt_time {
    int64_t ns;
    enum topt_basis basis;
};

/* Nanoseconds of one kernel on one device while 'devices' devices of the cluster work: the
 * longer of flops over the achieved rate and bytes over memory bandwidth, plus the launch.
 * Rounded once.  'devices' matters only where a profile says that devices share cores. */
int64_t topt_hw_compute_ns(const struct topt_hw *hw, enum topt_dtype t, enum topt_work w,
                           int64_t flops, int64_t bytes, int devices);

/* The same of an attention kernel, by the profile's rows for it (hw_attention.c); without such rows,
 * as of any kernel of TOPT_WORK_ATTENTION. */
struct topt_time topt_hw_attention(const struct topt_hw *hw, enum topt_dtype t,
                                   const struct topt_attention_run *run, int64_t flops,
                                   int64_t bytes, int devices);

/* The same of matrix products with 'outputs' results together, by the profile's row for the type
 * (hw_products.c); without a row, as of any kernel of TOPT_WORK_MATMUL. */
struct topt_time topt_hw_product(const struct topt_hw *hw, enum topt_dtype t,
                                 int64_t flops, int64_t outputs, int64_t bytes,
                                 int devices);

/* What decides the time of a kernel that was measured; 'outputs': numbers that it writes. */
struct topt_kernel_run {
    const struct topt_op *op;
    enum topt_kernel kernel;
    int64_t flops, bytes, outputs;
};
/* The word that tells samples of a kernel apart: its activation, "causal", "relative", "causal
 * relative", "rms" or "".  Static. */
const char *topt_kernel_variant(const struct topt_op *op, enum topt_kernel kernel);
/* The numbers of a sample before its time: operations, bytes, numbers written, those of a unit. */
void topt_kernel_features(const struct topt_kernel_run *run, double ret[4]);
/* Has the profile samples of single kernels? */
int topt_hw_clocks_kernels(const struct topt_hw *hw);
/* The time of a kernel by samples of the same kernel (hw_kernels.c); 0 where the profile has none. */
struct topt_time topt_hw_kernel(const struct topt_hw *hw, enum topt_dtype t,
                                const struct topt_kernel_run *run, int devices);
/* The time of making one matrix orthogonal, as Muon does (newton_schulz.c); 'gram': by its small square alone. */
struct topt_time topt_hw_orthogonal(const struct topt_hw *hw, enum topt_dtype t,
                                    int64_t rows, int64_t columns, int gram, int devices);

/* Nanoseconds of one collective; 0 for groups of one.  Rounded once. */
int64_t topt_hw_collective_ns(const struct topt_hw *hw, enum topt_collective c,
                              struct topt_group g, int64_t bytes);

/* The times of many numbers of bytes. */
void topt_hw_collective_all(const struct topt_hw *hw, enum topt_collective c,
                            struct topt_group g, const int64_t *bytes, int n,
                            int64_t *ret_ns);

/* These times, and their basis. */
struct topt_time topt_hw_compute(const struct topt_hw *hw, enum topt_dtype t,
                                 enum topt_work w, int64_t flops, int64_t bytes,
                                 int devices);
struct topt_time topt_hw_collective(const struct topt_hw *hw, enum topt_collective c,
                                    struct topt_group g, int64_t bytes);

#endif
