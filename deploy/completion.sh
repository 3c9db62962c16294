#!/bin/sh
# completion.sh TOPT bash|zsh - completion of topt's commands and options, from what `topt --help` and each command's
# --help print, which are their tables.
set -eu
# shellcheck disable=SC2016 # what is printed is expanded where it runs
topt=$1 shell=$2
commands=$("$topt" --help | awk '/^  / { print $1 }')

profiles=$("$topt" hw list | awk '/^  / { printf "%s ", $1 }')

# The words of one command: its options, or the commands that it has.
words() # COMMAND options|commands
{
    # shellcheck disable=SC2086 # "client plan" are two words
    "$topt" $1 --help 2>/dev/null |
        awk -v what="$2" '/^  [^ ]/ { sub(/=.*/, "", $1); if ($1 ~ (what == "options" ? "^--?[a-z]" : "^[a-z]")) print $1 }' | tr '\n' ' '
}

case $shell in bash | zsh) ;; *) echo "completion.sh: bash or zsh?" >&2 && exit 2 ;; esac
[ "$shell" = bash ] || printf '#compdef topt\nautoload -U +X bashcompinit && bashcompinit\n'
echo "# Made by deploy/completion.sh."
echo '_topt_words()
{
    local here=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]:-} words=
    if [ "$COMP_CWORD" = 1 ]; then'
echo "        words='$(echo "$commands" | tr '\n' ' ')'"
echo '    else
        case $command in'
for command in $commands; do
    if [ "$command" = client ]; then
        echo "            client) if [ \"\$COMP_CWORD\" = 2 ]; then words='$(words client commands)'; else words='$(words 'client plan' options)'; fi ;;"
    elif [ "$command" = report ]; then
        echo "            report) words='--json --url --timeout' ;;"
    else
        echo "            $command) words='$(words "$command" options)' ;;"
    fi
done
echo "        esac
        [ \"\${COMP_WORDS[COMP_CWORD - 1]}\" != --hw ] || words='$profiles'
    fi"
echo '    COMPREPLY=($(compgen -W "$words" -- "$here"))
}
complete -o default -F _topt_words topt'
# zsh reads the file when topt is completed for the first time, and takes what is called here for the answer.
[ "$shell" = bash ] || echo '_bash_complete -o default -F _topt_words'
