#!/bin/sh
# ferrite_test.sh TOOL SOURCES FOLDER
set -eu
tool="$1" sources="$2" folder="$3"
weights="$sources/data/vowels_torch.safetensors"
rm -rf "$folder" && mkdir -p "$folder"
failures=0

# expect CODE TEXT COMMAND...: runs a command, whose exit code and a part of whose output must be these.
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
nam="$sources/tests/data/nam"
expect 0 "arrays.0.layers.0.conv.weight      F32       [12, 2, 2]" "$tool" info "$nam/wavenet_bounds.nam"
expect 0 "sample_rate: 48000" "$tool" info "$nam/lstm.nam"
expect 0 "lstm.weight_ih_l0  F32       [12, 1]" "$tool" info "$nam/lstm.nam"
expect 0 "version: 0.5.4" "$tool" info "$nam/lstm.nam"
cp "$nam/lstm.nam" "$folder/lstm.json"
expect 2 "'version' is not made of numbers; a .nam file of the Neural Amp Modeler is read with" "$tool" info "$folder/lstm.json"
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
expect 2 "ending names no format; use .safetensors" "$tool" convert "$weights" "$folder/a.bin"
expect 2 "subcommand is required" "$tool"
expect 2 "--speed" "$tool" info --speed "$weights"

# ferrite freeze: a source, and the folders around it, which are named as they are or by --name.
expect 0 "$folder/echo.c, $folder/echo.h: " "$tool" freeze "sequence(1).gru(4).linear(1)" -o "$folder/echo.c"
expect 0 "int echo_step(echo *n, const float *x, float *y);" cat "$folder/echo.h"
expect 0 "5 files of the net my_echo" "$tool" freeze "$nam/lstm.nam" --arduino "$folder/My-Echo/"
expect 0 "#include <my_echo.h>" cat "$folder/My-Echo/examples/Stream/Stream.ino"
expect 0 "lstm.nam --arduino My-Echo" head -n 3 "$folder/My-Echo/src/my_echo.c"
expect 0 "8 files of the net amp" "$tool" freeze "$nam/lstm.nam" --browser "$folder/page" --name amp
expect 0 "clang --target=wasm32" cat "$folder/page/README.md"
# The trained nets, whose words contain spectra.
nets="$sources/data/nets"
expect 0 "mel_bands" "$tool" summary "$nets/keywords.safetensors"
for net in keywords.safetensors voice_activity.safetensors amplifier.nam; do
  expect 0 "$folder/frozen.c, $folder/frozen.h: " "$tool" freeze "$nets/$net" -o "$folder/frozen.c"
done
expect 2 "net: power_spectrum(400): takes 2 numbers" "$tool" summary "sequence(1).power_spectrum(400)"
expect 2 "give one of --output, --arduino and --browser" "$tool" freeze "$nam/lstm.nam"
expect 2 "give one of --output, --arduino and --browser" "$tool" freeze "$nam/lstm.nam" -o "$folder/a.c" --browser "$folder/b"
expect 2 "the output must end with .c" "$tool" freeze "$nam/lstm.nam" -o "$folder/a.bin"
expect 2 "or is a whole program" "$tool" freeze "sequence(1).linear(1)" --browser "$folder/b" --steps 4
# ferrite export: the builder words of another net, a step, and an ONNX model that is read and written again.
net="sequence(3).gru(4).linear(2)"
expect 0 "net.mlir: x -> y" "$tool" export "$net" "$folder/net.mlir"
expect 0 "step.mlir: x, 0.h -> y, 0.h.next" "$tool" export "$net" "$folder/step.mlir" --step
expect 0 "@main(%arg0: tensor<?x?x3xf32>) -> (tensor<?x?x2xf32>)" cat "$folder/net.mlir"
expect 0 "@main(%arg0: tensor<?x3xf32>, %arg1: tensor<1x?x4xf32>)" cat "$folder/step.mlir"
expect 0 "@main(%arg0: tensor<2x5x3xf32>) -> (tensor<2x5x2xf32>)" sh -c "'$tool' export '$net' '$folder/fixed.mlir' --batch 2 --steps 5 && cat '$folder/fixed.mlir'"
expect 0 "@main(%arg0: tensor<4x3xf32>" sh -c "'$tool' export '$net' '$folder/step.mlir' --step --batch 4 && cat '$folder/step.mlir'"
expect 2 "tells no format; use .onnx or .mlir" "$tool" export "$net" "$folder/net.txt"
expect 2 "must not be negative" "$tool" export "$net" "$folder/net.mlir" --steps -1
if "$tool" export "$net" "$folder/net.onnx" 2>/dev/null; then
  expect 0 "input  x  float[batch, time, 3]" "$tool" info "$folder/net.onnx"
  expect 0 "output y  float[batch, time, 2]" "$tool" info "$folder/net.onnx"
  expect 0 "GRU: 1" "$tool" info "$folder/net.onnx"
  expect 0 "input  x  float[2, 5, 3]" sh -c "'$tool' export '$net' '$folder/fixed.onnx' --batch 2 --steps 5 && '$tool' info '$folder/fixed.onnx'"
  expect 0 "again.onnx: x -> y" "$tool" export "$folder/net.onnx" "$folder/again.onnx" --batch 2 --steps 5
  expect 0 "input  x  float[2, 5, 3]" "$tool" info "$folder/again.onnx"
  expect 2 "--step is for nets of layers" "$tool" export "$folder/net.onnx" "$folder/again.onnx" --step
  printf '\010\010\072\033\012\014\012\001\170\022\001\171\042\004\122\145\154\165\022\001\147\132\003\012\001\170\142\003\012\001\171\102\002\020\021' > "$folder/bare.onnx"  # a Relu from x to y, without types
  expect 2 "does not say the shape of input 'x'" "$tool" export "$folder/bare.onnx" "$folder/again.onnx"
  expect 0 "input  0.h  float[1, 2, 4]" sh -c "'$tool' export '$net' '$folder/step.onnx' --step --batch 2 && '$tool' info '$folder/step.onnx'"
fi

# ferrite bench: every way of running, the table, the trace.
gru="sequence(3).gru(4).last_step().linear(2)"
for run in eager compiled stream train compiled-train; do
  expect 0 "$run on f32[2, 5, 3]: " "$tool" bench "$gru" --run $run --batch 2 --steps 5 --calls 4
  expect 0 ", 4 calls, 1 thread" "$tool" bench "$gru" --run $run --batch 2 --steps 5 --calls 4
done
# profiled LINE COMMAND...: one line of the table, without its times.
profiled() {
  line="$1"
  shift
  out="$("$@" 2>&1 | sed 's/  */ /g; s/\( [0-9][0-9.]*\)\{5\}$//')"
  if ! echo "$out" | grep -qxF "$line"; then echo "'$line' is missing from: $out"; failures=$((failures + 1)); fi
}
profiled "gru_sequence 0 7" "$tool" bench "$gru" --calls 7 --profile
profiled "compiled (no layer) 7" "$tool" bench "$gru" --run compiled --calls 7 --profile
profiled "gru step 0 35" "$tool" bench "$gru" --run stream --steps 5 --calls 7 --profile
profiled "gru_sequence_grad 7" "$tool" bench "$gru" --run compiled-train --calls 7 --profile --by kernel
profiled "lstm step 1 12" "$tool" bench "tokens(9).embedding(3).lstm(4, 2).linear(9)" --run stream --steps 4 --calls 3 --profile
expect 0 "open it with ui.perfetto.dev" "$tool" bench "features(3).linear(4).relu().linear(2)" --calls 5 --trace "$folder/trace.json"
expect 0 '"name":"matmul","args":{"layer":"2"}' cat "$folder/trace.json"
if command -v python3 >/dev/null; then expect 0 "" python3 -m json.tool "$folder/trace.json" "$folder/trace.txt"; fi
expect 2 "cannot write the trace" "$tool" bench "features(3).linear(4)" --calls 1 --trace "$folder/none/trace.json"
expect 2 "net: gru(): takes 1 or 2 numbers" "$tool" bench "sequence(3).gru()"
expect 2 "net: linear(2.5): takes whole numbers" "$tool" bench "features(3).linear(2.5)"
expect 2 "net: wavenet(3): is not a word of the builder" "$tool" bench "sequence(3).wavenet(3)"
expect 2 "net: gru(4): a net begins with sequence(n)" "$tool" bench "gru(4)"
expect 2 "net: cannot read 'linear(4'" "$tool" bench "features(3).linear(4"
expect 2 "net: cannot read 'x)'" "$tool" bench "features(3).linear(x)"
expect 2 "net: cannot read '; linear(2)'" "$tool" bench "features(3).linear(4); linear(2)"
expect 2 "no_such_net: cannot open the file" "$tool" bench no_such_net
expect 2 "--run must be eager" "$tool" bench "$gru" --run backwards
expect 2 "--by must be kernel-and-layer, kernel or layer, got 'time'" "$tool" bench "$gru" --profile --by time
expect 2 "only nets on sequences or tokens stream" "$tool" bench "features(3).linear(4)" --run stream
expect 2 "batch and steps must be positive" "$tool" bench "$gru" --batch 0
# ferrite train, run, summary: a table, windows in time, resuming, unknown keys.
cp "$sources/data/sunspots.csv" "$folder/sunspots.csv"
config() { sed -e 's#\.\./data/##' -e 's/epochs = 100/epochs = 3/' -e "$1" "$sources/examples/sunspots.toml" >"$folder/$2.toml"; }
config "" first
expect 0 "200 examples to learn from, 62 for validation" "$tool" train "$folder/first.toml"
expect 0 "epoch,loss,rmse,val_loss,val_rmse" head -n 1 "$folder/first/log.csv"
expect 0 "already trained: 3 of 3 epochs" "$tool" train "$folder/first.toml"
# A checkpoint resumes only the same training: differences are named, and allowed on purpose.
config "s/epochs = 3/epochs = 5/" first  # over which the cosine goes
expect 2 "is of another training: schedule" "$tool" train "$folder/first.toml"
expect 2 "or --changed schedule to continue with the new value" "$tool" train "$folder/first.toml"
expect 0 "epoch 4/5" "$tool" train "$folder/first.toml" --changed schedule
if "$tool" train "$folder/first.toml" | grep -q "epoch 4/5"; then echo "what was done is done again"; failures=$((failures + 1)); fi
expect 0 "5," tail -n 1 "$folder/first/log.csv"
cp "$folder/first/net.safetensors" "$folder/kept.safetensors"
config 's/epochs = 3/epochs = 5/; s/^learning_rate.*/learning_rate = 0.5/' first
expect 2 "is now 0.5; delete $folder/first or pass --restart to start over" "$tool" train "$folder/first.toml"
config 's/epochs = 3/epochs = 5/; s/"mse"/"l1"/' first
expect 2 "loss was mse, is now l1" "$tool" train "$folder/first.toml"
config 's/epochs = 3/epochs = 5/; s/"adamw"/"adam"/' first
expect 2 "optimizer was" "$tool" train "$folder/first.toml"
config 's/epochs = 3/epochs = 5/; s/^batch_size.*/batch_size = 8/' first
expect 2 "batch_size was" "$tool" train "$folder/first.toml"
config 's/epochs = 3/epochs = 5/; s/^seed = 0/seed = 7/' first
expect 2 "net_seed was 0, is now 7" "$tool" train "$folder/first.toml"
cmp "$folder/first/net.safetensors" "$folder/kept.safetensors" || { echo "a refused training wrote"; failures=$((failures + 1)); }
expect 2 "'learning_rat'" "$tool" train "$folder/first.toml" --changed learning_rat
config "s/epochs = 3/epochs = 5/" first
expect 0 "epoch 1/5" "$tool" train "$folder/first.toml" --restart
config "s/epochs = 3/epochs = 1000000/; s/^early_stopping.*//" endless
if timeout -s INT 5 "$tool" train "$folder/endless.toml" >"$folder/endless.log" 2>&1; then echo "it ended"; failures=$((failures + 1)); fi
expect 0 "interrupted; run the same command again to continue from the last save" cat "$folder/endless.log"
expect 0 "ferrite 0.2.0" "$tool" --version
expect 2 "there is no command 'trian'; did you mean 'train'?" "$tool" trian x.toml
expect 2 "there is no command 'xyzzy'; ferrite --help lists them" "$tool" xyzzy
for words in man --help "completion bash" info "summary $gru"; do
  # shellcheck disable=SC2086
  expect 2 "cannot write to the standard output" sh -c '"$0" "$@" >/dev/full' "$tool" $words
done
expect 0 "standardize" "$tool" summary "$folder/first/net.safetensors"
expect 0 "linear" "$tool" summary "$gru"
if command -v python3 >/dev/null; then  # one sequence of 24 steps, by hand: np.save's header
  python3 -c "import struct, sys
head = \"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 24, 1), }\"
head += ' ' * (118 - len(head) - 1) + chr(10)
sys.stdout.buffer.write(b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', len(head)) + head.encode() + struct.pack('<24f', *range(24)))" >"$folder/x.npy"
  expect 0 "[[" "$tool" run "$folder/first/net.safetensors" --input "$folder/x.npy"
  expect 0 "" "$tool" run "$folder/first/net.safetensors" --input "$folder/x.npy" --output "$folder/y.npy"
  expect 0 "F32       [1, 1]" "$tool" info "$folder/y.npy"
fi
expect 2 "none.csv" "$tool" run "$folder/first/net.safetensors" --input "$folder/none.csv"
config 's/loss = "mse"/los = "mse"/' wrong
expect 2 "wrong.toml:19: training.los: unknown key; did you mean 'loss'" "$tool" train "$folder/wrong.toml"
config 's/"adamw"/"sgdd"/' wrong
expect 2 "training.optimizer: there is no 'sgdd'; did you mean 'sgd'" "$tool" train "$folder/wrong.toml"
config 's/"mse"/"mes"/' wrong
expect 2 "loss: there is no 'mes'" "$tool" train "$folder/wrong.toml"
config 's/inputs = .*/inputs = ["sunspot"]/' wrong
expect 2 "sunspots" "$tool" train "$folder/wrong.toml"
config 's/= 16/= "many"/' wrong
expect 2 "loader.batch_size: must be a whole number" "$tool" train "$folder/wrong.toml"
config 's/^net = .*/net = [/' wrong
expect 2 "wrong.toml:" "$tool" train "$folder/wrong.toml"
expect 2 "there is no such file" "$tool" train "$folder/none.toml"
expect 2 "does not say what net it is of" "$tool" run "$weights" --input "$folder/sunspots.csv"
# refused TEXT SED: an edit of the configuration is refused with file, line and key, and nothing is written.
refused() {
  config "$2" wrong
  expect 2 "$folder/wrong.toml:$1" "$tool" train "$folder/wrong.toml"
  if [ -e "$folder/wrong" ]; then echo "something was written in spite of: $1"; failures=$((failures + 1)); rm -rf "$folder/wrong"; fi
}
# Unknown keys at every level.
refused "3: sead: unknown key; did you mean 'seed'?" 's/^seed/sead/'
refused "18: trainning: unknown key; did you mean 'training'?" 's/^\[training\]/[trainning]/'
refused "11: data.validaton: unknown key; did you mean 'validation'?" 's/^validation/validaton/; s/^split.*//; s/^gap.*//'
refused "10: data.windows.lenght: unknown key; did you mean 'length'?" 's/length = 24/lenght = 24/'
refused "16: loader.batch: unknown key; there are batch_size" 's/^batch_size/batch/'
refused "24: training.clipnorm: unknown key; did you mean 'clip_norm'?" 's/^clip_norm/clipnorm/'
refused "28: callbacks.early_stoping: unknown key; did you mean 'early_stopping'?" 's/^early_stopping/early_stoping/'
refused "28: callbacks.tensorbord: unknown key; did you mean 'tensorboard'?" 's/^early_stopping.*/tensorbord = true/'
# Keys without effect.
refused "28: callbacks.monitor: is what early_stopping and reduce_on_plateau look at" 's/^early_stopping.*/monitor = "loss"/'
refused "24: training.momentum: is for sgd, the optimizer is adamw" 's/^clip_norm.*/momentum = 0.9/'
refused "11: data.split: is for a share of the examples: set validation = 0.2" 's/^validation.*/split = "time"/; s/^split.*#.*//; 12d'
refused "11: data.lengths: is for files of tensors, sunspots.csv is none" 's/^validation.*/lengths = "n"/; s/^gap.*//; s/^split.*//'
refused "11: data.classes: is not for windows" 's/^validation.*/classes = true/; s/^gap.*//; s/^split.*//'
# Values.
refused "3: seed: must be at least 0, got -1" 's/^seed = 0/seed = -1/'
refused "2: net: net: gro(16): is not a word of the builder; did you mean 'gru'?" 's/gru(16)/gro(16)/'
refused "10: data.windows: must be a table" 's/^windows = .*/windows = 24/'
refused "10: data.windows: leaves no examples" 's/length = 24/length = 500/'
refused "11: data.validation: must be a share between 0 and 1" 's/validation = 0.3/validation = 30/'
refused "16: loader.batch_size: must be at least 1, got 0" 's/= 16/= 0/'
refused "20: training.metrics: metric: there is no 'acuracy'; did you mean 'accuracy'?" 's/"rmse"/"acuracy"/'
refused "19: training.loss: " 's/"mse"/"mes"/'
refused "23: training.epochs: must be at least 1, got 0" 's/^epochs = .*/epochs = 0/'
refused "24: training.clip_norm: must not be negative" 's/^clip_norm.*/clip_norm = -1/'
refused "21: training.optimizer: optimizer: the learning rate" 's/^learning_rate.*/learning_rate = -1/'
refused "25: training.schedule: there is no 'cosin'; did you mean 'cosine'?" 's/"cosine"/"cosin"/'
refused "28: callbacks.early_stopping: must be a whole number" 's/^early_stopping.*/early_stopping = "20"/'
refused "29: callbacks.monitor: there is no 'val_rms'; did you mean 'val_rmse'?" 's/^early_stopping.*/early_stopping = 20\nmonitor = "val_rms"/'
refused "28: callbacks.ema: weight average: the decay must lie in" 's/^early_stopping.*/ema = 1.5/'
# A net that does not fit the data.
refused "2: net: gives f32[1, 2] for a batch of one, whose target is f32[1, 1]" 's/linear(1)/linear(2)/'
refused "2: net: " 's/sequence(1)/sequence(3)/'
expect 2 "an example is f32[24, 1] with the target f32[1]" "$tool" train "$folder/wrong.toml"
refused "18: training: cross_entropy is for classes" 's/loss = "mse"/loss = "cross_entropy"/'
[ ! -e "$folder/wrong" ]

[ ! -e "$folder/a.bin" ]
[ "$failures" -eq 0 ] && echo "the command does what it says"
