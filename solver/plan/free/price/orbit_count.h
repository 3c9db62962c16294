/* orbit_count.h - how large the space is that a problem with orbits stands for. 
 * Private to plan/. */
#ifndef TOPT_ORBIT_COUNT_H
#define TOPT_ORBIT_COUNT_H

#include "free.h"

void topt_orbit_count(struct topt_problem *p);

#endif
