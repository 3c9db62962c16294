/* validation_page.c - docs/validation.html: every comparison of a measured number with its prediction in
 * one table, with a line to filter by and the figures of what is shown.  A page of its own, that asks
 * no network. */
#include "validation_page.h"

#include <stdio.h>
#include <string.h>

#include "topt_text.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>topt: predictions "
    "and measurements</title>\n"
    "<style>body{font:14px sans-serif;margin:1em}table{border-collapse:collapse}"
    "td,th{padding:.2em .6em;text-align:right;border-bottom:1px solid #8886}"
    "td.t,th.t{text-align:left;overflow-wrap:anywhere}td{white-space:nowrap}"
    "td.t{white-space:normal;min-width:7em}td:nth-child(-n+2){min-width:4em}td:nth-child("
    "3){min-width:14em}"
    "td:nth-child(7){min-width:24em}input,select{font:inherit;margin-right:.6em}"
    "th{cursor:pointer}:root{color-scheme:light dark}</style>\n"
    "<h1>Predictions and measurements</h1>\n"
    "<p>Written with <a href=\"VALIDATION.md\">VALIDATION.md</a>. The filter takes words "
    "of model, device, group or plan; a heading sorts.</p>\n"
    "<p><label>Filter <input id=\"words\" size=\"40\"></label><label>Kind <select "
    "id=\"kind\"></select></label><label>Side <select id=\"side\"></select></label></p>\n"
    "<p id=\"sum\" "
    "aria-live=\"polite\"></p><table><thead></thead><tbody></tbody></table>\n"
    "<script>\nconst rows = ";

static const char tail[] =
    ";\n"
    "const columns = ['kind', 'side', 'group', 'model', 'device', 'gpus', 'plan', "
    "'measured', 'predicted', 'error', 'low', 'high'];\n"
    "const texts = new Set(['kind', 'side', 'group', 'model', 'device', 'plan']);\n"
    "const at = id => document.getElementById(id);\n"
    "let by = null, down = false;\n"
    "for (const r of rows) r.error = r.predicted / r.measured - 1;\n"
    "for (const name of ['kind', 'side'])\n"
    "  for (const v of ['all', ...new Set(rows.map(r => r[name]))]) at(name).add(new "
    "Option(v));\n"
    "function shown() {\n"
    "  const words = at('words').value.toLowerCase().split(/\\s+/).filter(Boolean);\n"
    "  const of = r => [r.group, r.model, r.device, r.plan].join(' ').toLowerCase();\n"
    "  return rows.filter(r => words.every(w => of(r).includes(w)) &&\n"
    "    ['kind', 'side'].every(n => at(n).value === 'all' || at(n).value === r[n]));\n"
    "}\n"
    "const say = (r, c) => c === 'error' ? (100 * r[c]).toFixed(1) + ' %' : texts.has(c) "
    "|| c === 'gpus' ? r[c] : Number(r[c].toPrecision(4)) + (r.kind === 'memory' ? ' "
    "GiB' "
    ": ' s');\n"
    "function draw() {\n"
    "  const list = shown(), n = list.length || 1;\n"
    "  if (by) list.sort((a, b) => (a[by] > b[by] ? 1 : a[by] < b[by] ? -1 : 0) * (down "
    "? "
    "-1 : 1));\n"
    "  const mean = f => (100 * list.reduce((s, r) => s + f(r), 0) / n).toFixed(1) + ' "
    "%';\n"
    "  at('sum').textContent = `${list.length} numbers: mean error ${mean(r => "
    "Math.abs(r.error))}, with its sign ${mean(r => r.error)}, within the band ${mean(r "
    "=> "
    "r.low <= r.measured && r.measured <= r.high)}`;\n"
    "  const body = document.querySelector('tbody');\n"
    "  body.replaceChildren(...list.map(r => { const tr = document.createElement('tr'); "
    "for (const c of columns) { const td = tr.insertCell(); td.textContent = say(r, c); "
    "if "
    "(texts.has(c)) td.className = 't'; } return tr; }));\n"
    "}\n"
    "const line = document.querySelector('thead').insertRow();\n"
    "for (const c of columns) { const th = document.createElement('th'); th.textContent "
    "= "
    "c; if (texts.has(c)) th.className = 't'; th.onclick = () => { down = by === c && "
    "!down; by = c; draw(); }; line.append(th); }\n"
    "for (const id of ['words', 'kind', 'side']) at(id).oninput = draw;\n"
    "draw();\n</script></html>\n";

void page_add(json_t *rows, const struct group *g, int i, int judged)
{
    const struct row *r = &g->row[i];
    struct comparison c[2];
    struct topt_text plan = {0};
    row_add_plan(r, &plan);
    int n = comparisons_of(r, &g->ran[i], c);
    for (int k = 0; k < n; k++)
        json_array_append_new(
            rows,
            json_pack(
                "{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:s, s:f, s:f, s:f, s:f}", "kind",
                c[k].kind == KIND_MEMORY  ? "memory"
                : c[k].kind == KIND_NEWER ? "time, newer"
                                          : "time",
                "side", judged ? "judged" : "seen", "source", r->source, "group",
                *r->group ? r->group : r->source, "model", r->model, "device", r->device,
                "gpus", (json_int_t)r->gpus, "plan", plan.s, "measured", c[k].measured,
                "predicted", c[k].predicted, "low", c[k].low, "high", c[k].high));
    topt_text_fini(&plan);
}

int page_write(const char *path, const json_t *rows)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return -1;
    fputs(head, f);
    fputs("[", f);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        fputs(i ? ",\n" : "\n", f);
        json_dumpf(json_array_get(rows, i), f, JSON_COMPACT | JSON_REAL_PRECISION(5));
    }
    fputs("]", f);
    fputs(tail, f);
    return fclose(f) ? -1 : 0;
}
