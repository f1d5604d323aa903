#!/bin/sh
# ferrite_test.sh TOOL SOURCES FOLDER
set -eu
tool="$1" sources="$2" folder="$3"
weights="$sources/data/vowels_torch.safetensors"
rm -rf "$folder" && mkdir -p "$folder"
failures=0

# expect CODE TEXT COMMAND...: runs it; exit code and a part of what it prints must be these.
expect() {
  code="$1" text="$2" status=0
  shift 2
  out="$("$@" 2>&1)" || status=$?
  if [ "$status" -ne "$code" ]; then echo "exit code $status, not $code: $*"; failures=$((failures + 1)); fi
  case "$out" in *"$text"*) ;; *) echo "'$text' is missing from: $out"; failures=$((failures + 1)) ;; esac
}

expect 0 "0: GRU(input 12, hidden 64)" "$tool" info "$weights"
expect 0 "2: Linear(in 64, out 9)" "$tool" info "$weights"
expect 0 "6 tensors, 15561 numbers, 60.8 KiB" "$tool" info "$weights"
expect 0 "6 tensors" "$tool" convert "$weights" "$folder/a.pt"
expect 0 "GRU(input 12, hidden 64)" "$tool" info "$folder/a.pt"
expect 0 "6 tensors" "$tool" convert "$folder/a.pt" "$folder/b.npz"
expect 0 "6 tensors" "$tool" convert "$folder/b.npz" "$folder/c.safetensors"
halves="$sources/tests/data/safetensors/halves.safetensors"
expect 0 "$folder/d.pt: 3 tensors, 1 of them widened" "$tool" convert "$halves" "$folder/d.pt"
expect 0 "float16" "$tool" info "$folder/d.pt"
expect 0 "bfloat16" "$tool" info "$folder/d.pt"
expect 0 "3 tensors" "$tool" convert "$folder/d.pt" "$folder/e.safetensors"
expect 0 "BF16" "$tool" info "$folder/e.safetensors"
expect 0 "compared, largest relative difference 0" "$tool" diff "$halves" "$folder/e.safetensors"
expect 2 "NumPy has no dtype for bf16" "$tool" convert "$halves" "$folder/f.npz"
expect 0 "3 tensors, 3 of them widened" "$tool" convert --widen "$halves" "$folder/f.npz"
expect 0 "6 tensors compared, largest relative difference 0" "$tool" diff "$weights" "$folder/c.safetensors"
expect 1 "only in" "$tool" diff "$weights" "$sources/data/vowels_torch_logits.safetensors"
expect 0 "Exit codes" "$tool" --help
expect 0 "instruction set" "$tool" info
for set in $(env -u FERRITE_ISA "$tool" info | sed 's/.* may name //; s/,//g'); do
  expect 0 "instruction set $set;" env FERRITE_ISA="$set" "$tool" info
done
expect 2 "FERRITE_ISA: the library has no kernels for the instruction set: 'avx3'; it has" env FERRITE_ISA=avx3 "$tool" info
expect 0 "recognised layers" "$tool" info --help
expect 2 "README.md: is in no format that is known here" "$tool" info "$sources/README.md"
expect 2 "no_such_file: cannot open the file" "$tool" info no_such_file
expect 2 "tells no format; use .safetensors" "$tool" convert "$weights" "$folder/a.bin"
expect 2 "subcommand is required" "$tool"
expect 2 "--speed" "$tool" info --speed "$weights"
[ ! -e "$folder/a.bin" ]
[ "$failures" -eq 0 ] && echo "the command does what it says"
