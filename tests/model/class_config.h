/* class_config.h - importing configs that leave all sizes to their class.
 *
 * A config without any size is refused, with those that its class has.  One that says a single
 * size, as the class has it, is the class's model still. */
#ifndef TOPT_TEST_CLASS_CONFIG_H
#define TOPT_TEST_CLASS_CONFIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_json.h"
#include "topt_model.h"

static struct topt_model *
import_class(json_t *config, const struct topt_import_options *o, struct topt_error *err)
{
    struct topt_model *m = NULL;
    for (int tries = 0; !m && tries < 2; tries++) {
        char *text = json_dumps(config, 0), key[64];
        long long value;
        m = topt_model_import(text, strlen(text), "config.json", o, err);
        free(text);
        const char *has = m ? NULL : strstr(err->text, " has ");
        if (!has || sscanf(has, " has %63[a-z_] %lld", key, &value) != 2)
            break;
        json_object_set_new(config, key, json_integer(value));
    }
    return m;
}

#endif
