# complete.zsh SCRIPT FOLDER LINE: prints what zsh lists for a line in a folder after reading SCRIPT.
zmodload zsh/zpty
zpty shell zsh -f -i
answer() {  # what the shell writes until it has said the word
  local all= piece
  while zpty -r shell piece "*$1*"; do
    all+=$piece
    [[ $all == *$1* ]] && break
  done
  print -r -- "$all"
}
zpty -w shell "PROMPT= RPROMPT= COLUMNS=200 LISTMAX=0; stty cols 200; unsetopt zle_bracketed_paste"
zpty -w shell "autoload -U compinit && compinit -u -D; zstyle ':completion:*' list-prompt ''; zstyle ':completion:*' menu no"
zpty -w shell "source ${(q)1}; cd ${(q)2}"
zpty -w shell "said() { zle -I; print -r -- list'ed' }; zle -N said; bindkey '^Xs' said; bindkey '^Xl' list-choices; print rea'dy'"
answer ready >/dev/null
zpty -w -n shell "$3"$'\C-Xl\C-Xs'
answer listed
zpty -d shell
