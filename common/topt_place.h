/* topt_place.h - where toptd listens when nobody says: one rule for it and for all who ask it.
 *
 *     $TOPT_URL, where it is set (of the daemon only a unix: one);
 *     root:     /run/topt/toptd.sock
 *     others:   $XDG_RUNTIME_DIR/topt/toptd.sock, else ~/.local/state/topt/toptd.sock
 *
 * The daemon listens at the first of them.  Who asks takes the first where somebody
 * listens, and last /run/topt/toptd.sock, where the machine's own daemon listens.  So
 * somebody's own daemon is found by what that user starts, and the machine's by all
 * others. Thread safety: reads the environment; plain values. */
#ifndef TOPT_PLACE_H
#define TOPT_PLACE_H

#include <stddef.h>

#include "topt_error.h"

enum { TOPT_PLACE_PATH = 108 /* of a socket, with its NUL */ };

/* The path that a daemon listens at.  USAGE where neither $XDG_RUNTIME_DIR nor $HOME says. */
int topt_place_listen(char ret[TOPT_PLACE_PATH], struct topt_error *err) TOPT_MUST_CHECK;

/* The URL of the server to ask: $TOPT_URL as it is, else unix:PATH where somebody listens.
 * NOTFOUND, with the paths that were looked at, where there is none; then 'ret' has the last. */
int topt_place_ask(char *ret, size_t size, struct topt_error *err) TOPT_MUST_CHECK;

#endif
