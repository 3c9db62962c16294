/* paper_parts.h - what the models of papers are made of.  Private to solver/model. */
#ifndef TOPT_PAPER_PARTS_H
#define TOPT_PAPER_PARTS_H

#include "model_graph.h"

/* A model under construction; after the first failure nothing is added. */
struct paper {
    struct topt_model *m;
    int failed;
    struct topt_error *err;
    char prefix[24]; /* of names */
};

/* Does the paper's accounting of memory count the operator, or is it one with another? */
enum { COUNTED, FUSED };

#define ATTRS(...) ((struct topt_attrs){__VA_ARGS__})

/* An operator on one or two inputs; negative ones are left out. */
TOPT_PRINTF(7, 8)
int topt_paper_add(struct paper *p, int fused, const char *kind, int x, int y,
                   struct topt_attrs attrs, const char *fmt, ...);

/* A projection with its bias. */
int topt_paper_project(struct paper *p, int fused, int x, int64_t features, int64_t unit,
                       const char *name);
int topt_paper_relu(struct paper *p, int x, const char *name);

/* A square window of 'size' that keeps the extents, or divides them by 'stride'. */
struct topt_attrs topt_paper_window(int64_t size, int64_t stride);
int topt_paper_image(struct paper *p, int64_t size);
int topt_paper_conv_norm(struct paper *p, int x, int64_t channels,
                         struct topt_attrs attrs, const char *name);

#endif
