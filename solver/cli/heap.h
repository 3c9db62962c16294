/* heap.h - the heap of a program that plans and ends. */
#ifndef TOPT_HEAP_H
#define TOPT_HEAP_H

/* Before anything large is allocated: have the heap on huge pages, where the C library is glibc and the kernel has them. */
void topt_heap_open(void);

#endif
