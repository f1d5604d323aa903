/// The words and options of `ferrite`, for parsing, help, completion and the manual page.
#include "command_line.h"

#include <CLI/CLI.hpp>

namespace ferrite::tools {
namespace {

constexpr const char* kAbout =
    "Looks into files of weights: safetensors, PyTorch's .pt and .pth, NumPy's .npz and .npy, GGUF, JSON.\n"
    "Runs, times and writes ONNX models.\n"
    "Nothing in a file is ever run. Times nets, and says which kernels and layers take the time.\n"
    "Trains nets on tables, arrays and time series, and runs them.\n";
constexpr const char* kExamples =
    "Examples:\n"
    "  ferrite info model.pt                      what is in it, and which layers that makes\n"
    "  ferrite info                               which instruction set the library uses here\n"
    "  ferrite convert model.pt model.safetensors a form that every language reads\n"
    "  ferrite diff before.pt after.safetensors   by how much they differ, tensor by tensor\n"
    "  ferrite bench \"sequence(12).gru(64).last_step().linear(9)\" --run compiled-train --batch 32 --profile\n"
    "                                             how long a training step takes, and which kernels it consists of\n"
    "  ferrite train sunspots.toml                trains as the file says; docs/command.md lists its keys\n"
    "  ferrite run sunspots/net.safetensors --input x.npy --output y.npy\n"
    "  ferrite export sunspots/net.safetensors net.onnx\n"
    "                                             for other runtimes, batch and time left open\n"
    "  ferrite completion bash > ~/.local/share/bash-completion/completions/ferrite\n"
    "Exit codes: 0 done (diff: equal), 1 different, 2 an error, explained in one sentence.";

constexpr const char* kWeights = "FILE(.safetensors|.pt|.pth|.npz|.npy|.json)";
constexpr const char* kWeightsOrModel = "FILE(.safetensors|.pt|.pth|.npz|.npy|.json|.gguf|.onnx)";
constexpr const char* kWritten = "FILE(.safetensors|.pt|.pth|.npz)";

void add_files(CLI::App& app, Arguments& a) {
  CLI::App* info = app.add_subcommand("info", "Names, dtypes, shapes, sizes, recognised layers, metadata");
  info->add_option("FILE", a.first,
                   "A file of weights or an ONNX model; without one, the instruction sets of the library")
      ->type_name(kWeightsOrModel);
  CLI::App* convert =
      app.add_subcommand("convert", "Writes the tensors in another format, chosen by the extension of OUT");
  convert->add_option("IN", a.first, "A file of weights, or an ONNX model, whose parameters are written")
      ->type_name(kWeightsOrModel)
      ->required();
  convert->add_flag("--widen", a.widen, "Write F16 and BF16 as F32, and I8 as I32");
  convert->add_option("OUT", a.second, "Its new name")->type_name(kWritten)->required();
  CLI::App* diff = app.add_subcommand("diff", "Largest difference of each tensor; exit code 1 if there is any");
  diff->add_option("A", a.first, "A file of weights")->type_name(kWeights)->required();
  diff->add_option("B", a.second, "Another one")->type_name(kWeights)->required();
  diff->add_option("--tolerance", a.tolerance, "Allowed difference, relative to max(1, largest |b|)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("NUMBER");
}

void add_bench(CLI::App& app, Arguments& a) {
  CLI::App* bench = app.add_subcommand("bench", "Times a net on random numbers");
  bench
      ->add_option("NET", a.first,
                   "In words: sequence(n), features(n) or tokens(n), then linear(n), gru(n), lstm(n), rnn(n), "
                   "embedding(n), layer_norm(), last_step(), relu() and the like, with dots between; or a file of "
                   "RTNeural's JSON, or an ONNX model (eager, compiled)")
      ->type_name("FILE(.json|.onnx)")
      ->required();
  bench->add_option("--run", a.timing.run, "How")
      ->type_name("{eager,compiled,stream,train,compiled-train}")
      ->capture_default_str();
  bench->add_option("--batch", a.timing.batch, "Sequences at a time")->type_name("NUMBER")->capture_default_str();
  bench->add_option("--steps", a.timing.steps, "Steps of a sequence")->type_name("NUMBER")->capture_default_str();
  bench->add_option("--calls", a.timing.calls, "How many; 0: for a third of a second")
      ->type_name("NUMBER")
      ->capture_default_str();
  bench->add_option("--threads", a.timing.threads, "Threads of the pool")->type_name("NUMBER")->capture_default_str();
  bench->add_flag("--profile", a.timing.profile, "Time and calls of each kernel, by layer");
  bench->add_option("--by", a.rows, "Rows of the profile")
      ->type_name("{kernel-and-layer,kernel,layer}")
      ->capture_default_str();
  bench->add_option("--trace", a.timing.trace, "Writes a trace of the same calls for Perfetto and chrome://tracing")
      ->type_name("FILE(.json)");
}

void add_training(CLI::App& app, Arguments& a) {
  CLI::App* train = app.add_subcommand("train", "Trains a net as a TOML file says, or resumes from its last save");
  train->add_option("CONFIG", a.first, "Net, data, loss, optimizer, callbacks")->type_name("FILE(.toml)")->required();
  train->add_flag("--restart", a.training.restart, "Start over, without the last save");
  train
      ->add_option(
          "--changed", a.training.changed,
          "What differs from the last save on purpose: learning_rate, schedule, loss, data, ...; may be repeated")
      ->type_name("NAME");
  CLI::App* run = app.add_subcommand("run", "Runs a trained net or an ONNX model on an array");
  run->add_option("NET", a.first, "A file that `ferrite train` wrote, or an ONNX model")
      ->type_name("FILE(.safetensors|.onnx)")
      ->required();
  run->add_option("--input", a.input,
                  "Numbers; a tensor x of .npz and .safetensors; of an ONNX model each input by its name")
      ->type_name("FILE(.npy|.csv|.npz|.safetensors)")
      ->required();
  run->add_option("--output", a.output, "Where to; printed without")->type_name("FILE(.npy)");
  CLI::App* written =
      app.add_subcommand("export", "Writes a net for other runtimes: as an ONNX model, or as StableHLO");
  written
      ->add_option("NET", a.first,
                   "In words, as for bench, a file that `ferrite train` wrote, one of RTNeural or of the Neural Amp "
                   "Modeler, or an ONNX model")
      ->type_name("FILE(.safetensors|.json|.nam|.onnx)")
      ->required();
  written->add_option("OUT", a.second, "Its new name")->type_name("FILE(.onnx|.mlir)")->required();
  written->add_flag("--step", a.choice.step, "One step of a stream, its states as inputs and outputs");
  written->add_option("--batch", a.choice.batch, "Sequences at a time; 0: left open")
      ->type_name("NUMBER")
      ->capture_default_str();
  written->add_option("--steps", a.choice.steps, "Steps of a sequence; 0: left open")
      ->type_name("NUMBER")
      ->capture_default_str();
  CLI::App* summary = app.add_subcommand("summary", "The layers of a net, their output shapes, parameters and work");
  summary->add_option("NET", a.first, "In words, as for bench, or a file that `ferrite train` wrote")
      ->type_name("FILE(.safetensors)")
      ->required();
}

}  // namespace

std::unique_ptr<CLI::App> command_line(Arguments& a) {
  auto app = std::make_unique<CLI::App>(kAbout, "ferrite");
  app->footer(kExamples);
  app->set_version_flag("--version", "ferrite " FERRITE_TOOL_VERSION);
  app->require_subcommand(1);
  add_files(*app, a);
  add_bench(*app, a);
  add_training(*app, a);
  CLI::App* completion = app->add_subcommand("completion", "Prints a script by which a shell completes this command");
  completion->add_option("SHELL", a.shell, "Which shell")->type_name("{bash,zsh,fish}")->required();
  app->add_subcommand("man", "Prints the manual page, for man -l");
  return app;
}

}  // namespace ferrite::tools
