%(complete_func)s() {
    local IFS=$'\n' words=() response completion type value i
    # Where COMP_WORDBREAKS has "=", bash splits NAME=VALUE into three words, and wants the last one alone.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if ((i)) && [[ $COMP_WORDBREAKS == *=* && (${COMP_WORDS[i]} == = || ${COMP_WORDS[i-1]} == =) ]]; then
            words[-1]+=${COMP_WORDS[i]}
        else
            words+=("${COMP_WORDS[i]}")
        fi
    done

    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) %(complete_var)s=bash_complete $1)

    for completion in $response; do
        IFS=',' read type value <<< "$completion"
        if [[ $type == dir ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == file ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == plain ]]; then
            if [[ $COMP_WORDBREAKS == *=* && ${words[-1]} == *=* ]]; then
                value=${value##*=}
            elif [[ ${words[-1]} == --*=* ]]; then
                value=${words[-1]%%%%=*}=$value
            fi
            COMPREPLY+=("$value")
        fi
    done
}

complete -o nosort -F %(complete_func)s %(prog_name)s
