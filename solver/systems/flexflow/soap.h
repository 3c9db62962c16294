/* soap.h - how operators may be split, and what their parts take.  Private to flexflow/. */
#ifndef FLEXFLOW_SOAP_H
#define FLEXFLOW_SOAP_H

#include "ff_data.h"

int ff_degrees_list(struct topt_flexflow *f, int op);
void ff_price(const struct topt_flexflow *f, int op, const struct topt_soap *s,
              struct ff_price *ret);
int ff_is_param(const struct topt_flexflow *f, int op, int operand);
/* Place of part 'part' along dimension 'd'. */
int ff_coordinate(const struct topt_op *o, const struct topt_soap *s, int part, int d);
int64_t ff_operand_elements(const struct topt_op *o, const struct topt_soap *s,
                            int operand);

#endif
