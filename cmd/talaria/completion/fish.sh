# fish completion for talaria; load it with: talaria completion fish | source
function __talaria_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] __complete $words[2..-1] 2>/dev/null)
    if test (count $found) -eq 0
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $found
    end
end
complete -c talaria -f -a '(__talaria_complete)'
