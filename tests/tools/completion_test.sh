#!/bin/sh
# completion_test.sh TOOL FOLDER SHELL: what a shell completes, with the script that the tool prints for it.
set -eu
tool="$1" folder="$2/$3" shell="$3"
here="$(cd "$(dirname "$0")" && pwd)"
command -v "$shell" >/dev/null || { echo "skipped: there is no $shell"; exit 0; }
rm -rf "$folder" && mkdir -p "$folder/nets" && cd "$folder"
touch a.toml 'my run.toml' notes.txt w.pt w.npz x.npy
"$tool" completion "$shell" >script
failures=0

# candidates LINE: one a line.
candidates() {
  case "$shell" in
    bash)
      bash --norc -c '
        source ./script
        line=$1
        [[ $line == *" " ]] && line+="\"\""
        eval "COMP_WORDS=(${line//=/ = })"
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _ferrite
        printf "%s\n" "${COMPREPLY[@]}"' - "$1" ;;
    zsh) zsh -f "$here/complete.zsh" ./script . "$1" ;;
    fish) fish --no-config -c 'source script; complete -C $argv[1]' "$1" | sed 's/\t.*//; s/^--[a-z]*=//' ;;
  esac
}

# completes LINE "WANTED..." "UNWANTED...": all of the first are offered, none of the second.
completes() {
  all="$(candidates "$1")"
  for word in $2; do
    case "$all" in *"$word"*) ;; *) echo "'$1': '$word' is missing from: $all"; failures=$((failures + 1)) ;; esac
  done
  for word in $3; do
    case "$all" in *"$word"*) echo "'$1': '$word' should not be in: $all"; failures=$((failures + 1)) ;; esac
  done
}

commands="$("$tool" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p')"
[ "$(echo "$commands" | wc -w)" -eq 11 ] || { echo "commands of the help: $commands"; failures=$((failures + 1)); }
completes "ferrite " "$commands" "a.toml --help"
completes "ferrite co" "convert completion" "diff train"
completes "ferrite train " "a.toml run.toml nets" "notes w.pt x.npy"
completes "ferrite info " "w.pt w.npz x.npy nets" "notes a.toml"
completes "ferrite convert w.pt " "w.npz w.pt" "x.npy a.toml"
completes "ferrite diff --tolerance 1 w.pt " "w.npz" "notes a.toml"
completes "ferrite run a.safetensors --input " "x.npy w.npz" "a.toml w.pt"
completes "ferrite bench --run " "eager compiled stream compiled-train" "kernel w.pt"
completes "ferrite bench --run=c" "compiled compiled-train" "stream eager"
completes "ferrite bench --by " "kernel-and-layer layer" "eager"
completes "ferrite bench --batch 2 --" "--run --steps --profile --trace --help" "--widen --tolerance"
completes "ferrite completion " "bash zsh fish" "w.pt"
# The command accepts every value that it offers for an option.
if [ "$shell" = bash ]; then
  for how in $(candidates "ferrite bench --run "); do
    "$tool" bench "sequence(3).gru(4)" --run "$how" --calls 1 >/dev/null || failures=$((failures + 1))
  done
  for rows in $(candidates "ferrite bench --by "); do
    "$tool" bench "sequence(3).gru(4)" --profile --by "$rows" --calls 1 >/dev/null || failures=$((failures + 1))
  done
fi
[ "$failures" -eq 0 ] && echo "$shell completes"
