#compdef talaria
# zsh completion for talaria; load it with: source <(talaria completion zsh)
_talaria() {
  local -a found
  found=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=("${(@)found:#}")
  if (( ! $#found )); then
    _files
    return
  fi
  found=("${(@)found//:/\\:}")
  found=("${(@)found/$'\t'/:}")
  _describe talaria found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _talaria "$@"
else
  compdef _talaria talaria
fi
