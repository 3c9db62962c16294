/* onnx_none.c - what stands for the ONNX importer where it was not built in. */
#include "onnx.h"

struct topt_model *topt_onnx_build(const char *bytes, size_t len, const char *name,
                                   const struct topt_import_options *o,
                                   struct topt_error *err)
{
    (void)bytes, (void)len, (void)name, (void)o;
    topt_fail(
        err, TOPT_ERR_INVAL,
        "it is ONNX, which this topt was built without: build it where libonnx-dev, "
        "protobuf-c-compiler and libprotobuf-c-dev are installed");
    return NULL;
}
