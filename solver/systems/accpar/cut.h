/* cut.h - prices of one cut.  Private to systems/accpar. */
#ifndef TOPT_ACCPAR_CUT_H
#define TOPT_ACCPAR_CUT_H

#include "topt_accpar.h"

struct pricing {
    const struct topt_accpar_net *net;
    const struct topt_accpar_part *part; /* NULL: all of every layer */
    const struct topt_accpar_sides *sides;
    enum topt_accpar_system system;
};

/* Of side 0, for a layer of a type. */
double topt_accpar_layer_share(const struct pricing *p, int l, enum topt_accpar_type t);

/* Elements that each side receives within a layer of which side 0 has the share 'a'; and between
 * two layers with the shares 'a' and 'b'. */
void topt_accpar_own(const struct pricing *p, int l, enum topt_accpar_type t, double a,
                     double ret[2]);
void topt_accpar_edge(const struct pricing *p, const struct topt_accpar_edge *e,
                      enum topt_accpar_type from, enum topt_accpar_type to, double a,
                      double b, double ret[2]);

/* Seconds of all exchanges at the cut, the slower side's of each. */
double topt_accpar_exchange(const struct pricing *p, const struct topt_accpar_cut *c);

#endif
