/// The words and options of `ferrite`, for parsing, help, completion and the manual page.
#include "command_line.h"

#include <CLI/CLI.hpp>

namespace ferrite::tools {
namespace {

constexpr const char* kAbout =
    "Inspects, converts and compares weight files: safetensors, PyTorch's .pt and .pth, NumPy's .npz and .npy, GGUF, "
    "JSON.\n"
    "Trains networks on tables, arrays and time series from a TOML file, and runs them.\n"
    "Runs, times and exports ONNX models. Measures networks by layer and kernel.\n"
    "Code inside a file is never executed.\n";
constexpr const char* kExamples =
    "Examples:\n"
    "  ferrite info model.pt                      what the file contains, and which layers it fits\n"
    "  ferrite info                               which instruction set the library uses on this machine\n"
    "  ferrite convert model.pt model.safetensors a format that every language reads\n"
    "  ferrite diff before.pt after.safetensors   the largest difference of each tensor\n"
    "  ferrite bench \"sequence(12).gru(64).last_step().linear(9)\" --run compiled-train --batch 32 --profile\n"
    "                                             how long a training step takes, kernel by kernel\n"
    "  ferrite train sunspots.toml                trains as the file says; docs/command.md lists the keys\n"
    "  ferrite run sunspots/net.safetensors --input x.npy --output y.npy\n"
    "  ferrite export sunspots/net.safetensors net.onnx\n"
    "                                             for other runtimes, any batch and length\n"
    "  ferrite freeze sunspots/net.safetensors -o net.c\n"
    "                                             one C file, for programs that link no library\n"
    "  ferrite completion bash > ~/.local/share/bash-completion/completions/ferrite\n"
    "Exit codes: 0 success (diff: equal), 1 different, 2 an error, which is explained in one sentence.";

constexpr const char* kWeights = "FILE(.safetensors|.pt|.pth|.npz|.npy|.json)";
constexpr const char* kWeightsOrModel = "FILE(.safetensors|.pt|.pth|.npz|.npy|.json|.gguf|.onnx)";
constexpr const char* kWritten = "FILE(.safetensors|.pt|.pth|.npz)";

void add_files(CLI::App& app, Arguments& a) {
  CLI::App* info = app.add_subcommand("info", "Prints names, dtypes, shapes, sizes, recognised layers and metadata");
  info->add_option("FILE", a.first,
                   "A weight file or an ONNX model; if absent, the instruction sets of the library are printed")
      ->type_name(kWeightsOrModel);
  CLI::App* convert =
      app.add_subcommand("convert", "Writes the tensors in another format, chosen by the extension of OUT");
  convert->add_option("IN", a.first, "A weight file, or an ONNX model whose parameters are written")
      ->type_name(kWeightsOrModel)
      ->required();
  convert->add_flag("--widen", a.widen, "Write F16 and BF16 as F32, and I8 as I32");
  convert->add_option("OUT", a.second, "The file to write")->type_name(kWritten)->required();
  CLI::App* diff =
      app.add_subcommand("diff", "Prints the largest difference of each tensor; the exit code is 1 if there is any");
  diff->add_option("A", a.first, "A weight file")->type_name(kWeights)->required();
  diff->add_option("B", a.second, "The weight file to compare with")->type_name(kWeights)->required();
  diff->add_option("--tolerance", a.tolerance, "Allowed difference, relative to max(1, largest |b|)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("NUMBER");
}

void add_bench(CLI::App& app, Arguments& a) {
  CLI::App* bench = app.add_subcommand("bench", "Times a network on random numbers");
  bench
      ->add_option(
          "NET", a.first,
          "A network in words: sequence(n), features(n) or tokens(n), then linear(n), gru(n), lstm(n), rnn(n), "
          "embedding(n), layer_norm(), last_step(), relu() and so on, separated by dots; or an "
          "RTNeural JSON file, or an ONNX model (eager, compiled)")
      ->type_name("FILE(.json|.onnx)")
      ->required();
  bench->add_option("--run", a.timing.run, "How the network runs")
      ->type_name("{eager,compiled,stream,train,compiled-train}")
      ->capture_default_str();
  bench->add_option("--batch", a.timing.batch, "Sequences in a batch")->type_name("NUMBER")->capture_default_str();
  bench->add_option("--steps", a.timing.steps, "Steps in a sequence")->type_name("NUMBER")->capture_default_str();
  bench->add_option("--calls", a.timing.calls, "Number of calls; 0: as many as fit into a third of a second")
      ->type_name("NUMBER")
      ->capture_default_str();
  bench->add_option("--threads", a.timing.threads, "Number of threads")->type_name("NUMBER")->capture_default_str();
  bench->add_flag("--profile", a.timing.profile, "Prints time and calls of each kernel, by layer");
  bench->add_option("--by", a.rows, "What a row of the profile is")
      ->type_name("{kernel-and-layer,kernel,layer}")
      ->capture_default_str();
  bench->add_option("--trace", a.timing.trace, "Writes a trace of the same calls for Perfetto and chrome://tracing")
      ->type_name("FILE(.json)");
}

void add_training(CLI::App& app, Arguments& a) {
  CLI::App* train = app.add_subcommand("train", "Trains a network as a TOML file says, or resumes from its last save");
  train->add_option("CONFIG", a.first, "Describes network, data, loss, optimizer and callbacks")
      ->type_name("FILE(.toml)")
      ->required();
  train->add_flag("--restart", a.training.restart, "Start over and ignore the last save");
  train
      ->add_option("--changed", a.training.changed,
                   "A setting that differs from the last save on purpose: learning_rate, schedule, loss, data, ...; "
                   "may be repeated")
      ->type_name("NAME");
  CLI::App* run = app.add_subcommand("run", "Runs a trained network or an ONNX model on an array");
  run->add_option("NET", a.first, "A file that `ferrite train` wrote, or an ONNX model")
      ->type_name("FILE(.safetensors|.onnx)")
      ->required();
  run->add_option(
         "--input", a.input,
         "The input: an array, a table, or the tensor named x; for an ONNX model, a tensor named like each input")
      ->type_name("FILE(.npy|.csv|.npz|.safetensors)")
      ->required();
  run->add_option("--output", a.output, "The file to write; if absent, the output is printed")->type_name("FILE(.npy)");
  CLI::App* written =
      app.add_subcommand("export", "Exports a network for other runtimes, as an ONNX model or as StableHLO");
  written
      ->add_option(
          "NET", a.first,
          "A network in words as for bench, a file that `ferrite train` wrote, an RTNeural or Neural Amp Modeler "
          "file, or an ONNX model")
      ->type_name("FILE(.safetensors|.json|.nam|.onnx)")
      ->required();
  written->add_option("OUT", a.second, "The file to write")->type_name("FILE(.onnx|.mlir)")->required();
  written->add_flag("--step", a.choice.step, "Export one step of a stream, with its states as inputs and outputs");
  written->add_option("--batch", a.choice.batch, "Sequences in a batch; 0: any number")
      ->type_name("NUMBER")
      ->capture_default_str();
  written->add_option("--steps", a.choice.steps, "Steps in a sequence; 0: any number")
      ->type_name("NUMBER")
      ->capture_default_str();
  CLI::App* summary =
      app.add_subcommand("summary", "Prints the layers of a network with output shapes, parameters and multiply-adds");
  summary->add_option("NET", a.first, "A network in words as for bench, or a file that `ferrite train` wrote")
      ->type_name("FILE(.safetensors)")
      ->required();
}

void add_freeze(CLI::App& app, Arguments& a) {
  CLI::App* freeze = app.add_subcommand("freeze", "Writes a network as one C file, without a library or a heap");
  freeze
      ->add_option(
          "NET", a.first,
          "A network in words as for bench, a file that `ferrite train` wrote, an RTNeural or Neural Amp Modeler "
          "file, or an ONNX model")
      ->type_name("FILE(.safetensors|.json|.nam|.onnx)")
      ->required();
  freeze
      ->add_option("-o,--output", a.frozen.output,
                   "The source to write; the header lies beside it. This or a folder is needed")
      ->type_name("FILE(.c)");
  freeze->add_option("--arduino", a.frozen.arduino, "The folder to write a library for Arduino and PlatformIO into")
      ->type_name("DIR");
  freeze
      ->add_option("--browser", a.frozen.browser, "The folder to write a module for browsers into; see README.md there")
      ->type_name("DIR");
  freeze->add_option("--name", a.frozen.name, "How the names in C begin; if absent, the name of the output or folder")
      ->type_name("NAME");
  freeze->add_option("--batch", a.frozen.batch, "Rows of a step")->type_name("NUMBER")->capture_default_str();
  freeze->add_option("--steps", a.frozen.steps, "A whole run over this many steps; 0: one step of a stream")
      ->type_name("NUMBER")
      ->capture_default_str();
  freeze
      ->add_option("--block", a.frozen.block,
                   "Steps at once where none waits for another; 0: one at a time; if absent, 32, for Arduino 0")
      ->type_name("NUMBER");
  freeze->add_flag("--jacobian", a.frozen.jacobian, "Writes the step's derivatives, too: NAME_jacobian.c, in doubles");
  freeze->add_flag("--casadi", a.frozen.casadi, "Writes the step and its derivatives for CasADi, too: NAME_step*.c");
  freeze->add_option("--time", a.frozen.time, "ONNX: the dimension of time, for one step of a stream")
      ->type_name("NAME");
  freeze
      ->add_option("--state", a.frozen.states, "ONNX: INPUT=OUTPUT, a state that the model passes on; may be repeated")
      ->type_name("NAME");
  freeze->add_option("--size", a.frozen.sizes, "ONNX: NAME=NUMBER, a dimension with a name; may be repeated")
      ->type_name("NAME");
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
  add_freeze(*app, a);
  CLI::App* completion = app->add_subcommand("completion", "Prints a completion script for a shell");
  completion->add_option("SHELL", a.shell, "The shell")->type_name("{bash,zsh,fish}")->required();
  app->add_subcommand("man", "Prints the manual page, for man -l");
  return app;
}

}  // namespace ferrite::tools
