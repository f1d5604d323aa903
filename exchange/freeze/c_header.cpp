/// Writes the header of a frozen net.
#include "ferrite/exchange/freeze/c_header.h"

#include <cstdio>

#include "ferrite/exchange/freeze/c_text.h"

namespace ferrite::exchange::detail {
namespace {

constexpr std::string_view kStepFunctions = R"(
/* Prepares an instance and begins a sequence. Call it before anything else. */
void nf_init(nf_self *n);
/* Runs one step. Returns 0, or an error; then no state has changed. Inputs and outputs must not overlap. */
int nf_step(nf_self *n$P);
/* Runs `steps` steps on rows of inputs and outputs. Returns 0, or the error of the first step that fails. */
int nf_steps(nf_self *n, int32_t steps$P);
/* Begins a new sequence. */
void nf_reset(nf_self *n);
/* Writes the states to NF_SAVED_BYTES bytes, and reads them back. */
void nf_save(const nf_self *n, void *to);
int nf_restore(nf_self *n, const void *from);
)";
constexpr std::string_view kStagedFunctions = R"(
/* What a step returns that gives no output: the net strides, or looks ahead. */
#define NF_NOTHING (-1)

/* Prepares an instance and begins a sequence. Call it before anything else. */
void nf_init(nf_self *n);
/* Runs one step. Returns 0 if it gives an output, NF_NOTHING if it gives none, or an error; then no state has changed.
   Inputs and outputs must not overlap. */
int nf_step(nf_self *n$P);
/* Gives the next of the outputs that come after the last input: 0, or NF_NOTHING when there are no more. */
int nf_finish(nf_self *n$O);
/* Begins a new sequence. */
void nf_reset(nf_self *n);
/* Writes the states to NF_SAVED_BYTES bytes, and reads them back. */
void nf_save(const nf_self *n, void *to);
int nf_restore(nf_self *n, const void *from);
)";
constexpr std::string_view kProgramFunctions = R"(
/* Prepares an instance. Call it before anything else. */
void nf_init(nf_self *n);
/* Runs the program. Returns 0, or an error. Inputs and outputs must not overlap. */
int nf_run(nf_self *n$P);
)";
constexpr std::string_view kTrainingFunctions = R"(
/* Prepares an instance: its variables get the values that they had when this file was written. Call it before anything
   else. */
void nf_init(nf_self *n);
/* Makes one step of training: computes the loss, and assigns the variables. Returns 0, or an error; then no variable
   has changed. Inputs and outputs must not overlap. */
int nf_train(nf_self *n$P);
$Q/* Writes the variables to NF_SAVED_BYTES bytes, and reads them back. */
void nf_save(const nf_self *n, void *to);
int nf_restore(nf_self *n, const void *from);
)";
constexpr std::string_view kPredictFunction = R"(/* Runs the net with the present values of its variables. */
int nf_predict(nf_self *n$P);
)";
constexpr std::string_view kTrainingCheck =
    R"(/* Compares stored steps with this build, bit by bit: 0 if they agree, else the number of the first that differs.
   Compilers change bits if they are told to (-ffast-math). Calls nf_init before and after. */
int nf_check(nf_self *n);

)";
constexpr std::string_view kVariables =
    R"(/* One instance. Members with a name of a variable may be read, and written between calls: weights, which are row-major,
   states of the optimiser, its learning rate. */
)";
constexpr std::string_view kCheckFunction =
    R"(/* Compares stored runs with this build, bit by bit: 0 if they agree, else the number of the first that differs.
   Compilers change bits if they are told to (-ffast-math). Begins a new sequence. */
int nf_check(nf_self *n);

)";
constexpr std::string_view kErrors = R"(
/* What functions return besides 0: an index outside its table, full states, states that no step leaves. */
#define NF_BAD_INDEX 1
#define NF_FULL 2
#define NF_BAD_STATE 3

)";

void write_sizes(CText& t, const std::vector<Spec>& specs, const std::vector<std::string>& names,
                 const std::string& alone, const std::string& before = {}) {
  for (std::size_t i = 0; i < specs.size(); ++i)
    t.line("#define NF_" + before + (specs.size() == 1 ? alone : upper(seen(names[i]))) + " " +
           std::to_string(specs[i].shape.numel()));
}

}  // namespace

std::string head(const FreezeOptions& options, const FileFacts& facts, std::string_view file) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(facts.hash));
  return "/* " + options.name + std::string(file) + ": " + c_comment(facts.what) + "\n   Written by Ferrite " +
         FERRITE_VERSION + ": " + c_comment(options.command) + "\n   Model " + hash + ". Do not edit. */\n";
}

std::string header(const FreezeOptions& options, const FileFacts& facts, Interface interface, const Ends& ends,
                   const CStates& states, const CWork& work, bool wide_masks, const Ends* predict) {
  const bool trains = interface == Interface::training;
  CText t;
  t.append(head(options, facts, ".h"));
  t.line("#ifndef NF_HEADER_INCLUDED");
  t.line("#define NF_HEADER_INCLUDED");
  t.line("#include <stdint.h>");
  t.line("#ifdef __cplusplus");
  t.line("extern \"C\" {");
  t.line("#endif");
  t.append("\n/* The numbers that a run reads and writes" +
           std::string(interface != Interface::program ? ", and the bytes that nf_save writes" : "") + ". */\n");
  write_sizes(t, ends.inputs, ends.names.inputs, "INPUTS");
  write_sizes(t, ends.outputs, ends.names.outputs, "OUTPUTS");
  if (predict) {
    write_sizes(t, predict->inputs, predict->names.inputs, "INPUTS", "PREDICT_");
    write_sizes(t, predict->outputs, predict->names.outputs, "OUTPUTS", "PREDICT_");
  }
  if (interface != Interface::program) t.line("#define NF_SAVED_BYTES " + std::to_string(states.saved_bytes()));
  t.append(kErrors);
  t.line("typedef " + std::string(wide_masks ? "int64_t" : "int32_t") + " nf_mask; /* -1: true, 0: false */");
  t.append(trains ? kVariables : "/* One instance. Its members are not for others. */\n");
  t.open("typedef struct nf_self");
  states.write_members(t);
  if (!work.on_stack()) work.write_members(t);
  if (interface == Interface::stages) t.line("int32_t finished;");
  if (states.size() == 0 && work.on_stack() && interface != Interface::stages) t.line("char nothing;");
  t.close(" nf_self;");
  const std::string_view functions = interface == Interface::stages  ? kStagedFunctions
                                     : interface == Interface::steps ? kStepFunctions
                                     : trains                        ? kTrainingFunctions
                                                                     : kProgramFunctions;
  const std::string predicts =
      predict ? replaced(std::string(kPredictFunction), "$P", predict->parameters(true)) : std::string();
  std::string text = replaced(std::string(functions), "$P", ends.parameters(true));
  text = replaced(std::move(text), "$O", ends.outputs_of(true));
  t.append(replaced(std::move(text), "$Q", predicts));
  t.append(trains ? kTrainingCheck : kCheckFunction);
  t.line("#ifdef __cplusplus");
  t.line("}");
  t.line("#endif");
  t.line("#endif");
  return t.str();
}

}  // namespace ferrite::exchange::detail
