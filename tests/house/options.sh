#!/usr/bin/env bash
# options.sh ROOT BIN - every option of every program stands in its man page and the other way
# round; BIN has topt, and toptd where it was built.  What was not built is left out.
set -euo pipefail
root=$1 bin=$2
man=$root/docs/man
bad=0 checked=0
complain()
{
    echo "not ok - $*"
    bad=1
}

page() # page FILE: without the markup of fonts and dashes
{
    sed -e 's/\\f[A-Z]//g' -e 's/\\-/-/g' "$man/$1"
}

section() # section FILE NAME: its lines
{
    page "$1" | awk -v name=".SH $2" '/^\.SH / { in_it = $0 == name; next } in_it'
}

options() # those named in the text, sorted
{
    { grep -oE '(^|[ ",(])-(-[a-z][a-z0-9-]*|o)\b' || true; } | sed -E 's/^[ ",(]//' | sort -u
}

headings() # lines after .TP, which say what is described
{
    awk 'tp { print } { tp = /^\.TP/ }' | options
}

helped() # helped COMMAND...: options of its --help, or nothing where it was not built
{
    "$@" --help 2>/dev/null | grep -E '^  -' | awk '{ print $1 }' | sort -u || true
}

words() # words TEXT: its lines in one
{
    tr -d '\t' <<<"$1" | tr '\n' ' '
}

same() # same WHAT HAVE WANT: two lists of options
{
    local only
    checked=$((checked + 1))
    only=$(comm -23 <(echo "$2") <(echo "$3"))
    [ -z "$only" ] || complain "$1: --help has $(words "$only")and the man page does not"
    only=$(comm -13 <(echo "$2") <(echo "$3"))
    [ -z "$only" ] || complain "$1: the man page has $(words "$only")and --help does not"
}

# topt: what each command takes, and each option described once.
of_commands=$(section topt.1 "OPTIONS OF EACH COMMAND")
all=
told_of=$(section topt.1 COMMANDS) # whole: a reader that leaves early would end the pipe
for command in $("$bin/topt" --help | awk '/^  / { print $1 }'); do
    checked=$((checked + 1))
    grep -qE "topt $command\b" <<<"$told_of" || complain "topt.1 does not tell of topt $command"
    [ "$command" != client ] && [ "$command" != sbatch ] && [ "$command" != report ] || continue
    told=$(echo "$of_commands" | awk -v name=".B topt $command" '/^\./ { in_it = $0 == name; next } in_it' | options)
    [ -n "$told" ] || complain "topt.1 has no options of topt $command"
    all+=" $(words "$told")"
    have=$(helped "$bin/topt" "$command")
    if [ -n "$have" ]; then
        same "topt $command" "$have" "$told"
    else
        echo "# topt $command was not built"
    fi
done
all=$(tr ' ' '\n' <<<"$all" | grep . | sort -u)
described=$(section topt.1 OPTIONS | headings)
only=$(comm -3 <(echo "$all") <(echo "$described"))
[ -z "$only" ] || complain "topt.1: not both listed and described: $(words "$only")"
for command in $(echo "$of_commands" | sed -n 's/^\.B topt //p'); do
    "$bin/topt" --help | grep -qE "^  $command\b" || complain "topt.1 tells of topt $command, which is none"
done

if "$bin/topt" client --help >/dev/null 2>&1; then
    commands=$("$bin/topt" client --help | awk '/^  / { print $1 }')
    have=$(for command in $commands; do helped "$bin/topt" client "$command"; done | sort -u)
    same "topt client" "$have" "$(section topt-client.1 OPTIONS | headings)"
    for command in $commands; do
        section topt-client.1 COMMANDS | grep -qE "(^|[ \"])$command\b" ||
            complain "topt-client.1 does not tell of topt client $command"
    done
fi
if [ -x "$bin/toptd" ]; then
    same toptd "$(helped "$bin/toptd")" "$(section toptd.8 OPTIONS | headings)"
fi
asked=$({
    grep -oE '(SBATCH|TOPTD), "[a-z0-9-]+"' "$root/common/topt_fields.h" | sed -E 's/.*"(.*)"/--topt-\1/'
    sed -nE 's/.*X\([A-Z_]+, "(topt-[a-z-]+)".*/--\1/p' "$root/slurm_plugin/ask.h"
} | sort -u)
same "sbatch" "$asked" "$(page spank_topt.8 | headings | grep -- --topt-)"
if "$bin/topt" sbatch --help >/dev/null 2>&1; then
    same "topt sbatch" "$(helped "$bin/topt" sbatch | sed 's/=.*//' | sort -u)" "$asked"
fi

[ $bad = 1 ] || echo "ok - options of $checked commands stand in their man pages"
exit $bad
