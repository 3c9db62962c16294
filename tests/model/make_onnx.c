/* make_onnx.c - writes one of the tests' ONNX models to standard output.
 *
 * usage: model_make_onnx block|digits|images|steps > FILE */
#include "onnx_graph.h"

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*make)(struct graph *g);
    } graphs[] = {{"block", graph_block},
                  {"digits", graph_digits},
                  {"images", graph_images},
                  {"steps", graph_steps}};
    struct graph g;
    if (argc != 2 || !reads_onnx())
        return 77; /* as a test that is skipped */
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
        if (!strcmp(graphs[i].name, argv[1])) {
            graphs[i].make(&g);
            size_t n = fwrite(g.file.s, 1, g.file.len, stdout), len = g.file.len;
            topt_text_fini(&g.file);
            return n == len && !fflush(stdout) ? 0 : 1;
        }
    return 2;
}
