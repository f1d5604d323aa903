// Runs an ONNX model over recorded inputs, call by call, and carries its states; compare_onnx_runtime.py judges the
// results.
//
//     run_recorded MODEL.onnx IN.npz OUT.npz [STATE=NEXT ...]
//
// IN.npz has an array for each input of the model. Arrays of inputs have the calls as their first axis. States have
// their first value; in each further call they are what output NEXT was. Scalars are constants. OUT.npz has all
// outputs, with the calls as their first axis.
#include <ferrite/exchange/onnx.h>
#include <ferrite/ferrite.h>

#include <iostream>
#include <map>

using namespace ferrite;

int main(int argc, char** argv) try {
  if (argc < 4) throw ValueError("run_recorded MODEL.onnx IN.npz OUT.npz [STATE=NEXT ...]");
  std::map<std::string, std::string> next;
  for (int i = 4; i < argc; ++i) {
    const std::string pair = argv[i];
    const std::size_t at = pair.find('=');
    if (at == std::string::npos) throw ValueError("no STATE=NEXT: " + pair);
    next[pair.substr(0, at)] = pair.substr(at + 1);
  }
  const io::TensorFile recorded = io::read_npz(argv[2]);
  onnx::ReadOptions options{.frozen = true};
  for (const std::string_view name : recorded.names())
    if (const Tensor x = recorded.tensor(name); x.rank() == 0) options.constants[std::string(name)] = x;
  const onnx::Model model = onnx::read(argv[1], options);
  const auto run = compile([&](const Tensors& x) { return model.run(x); });

  Tensors arrays;
  std::int64_t calls = 0;
  for (const onnx::Port& port : model.inputs()) {
    arrays.push_back(recorded.tensor(port.name));
    if (!next.contains(port.name)) calls = arrays.back().size(0);
  }
  std::vector<Tensors> results(model.outputs().size());
  Tensors states = arrays;
  for (std::int64_t call = 0; call < calls; ++call) {
    Tensors in;
    for (std::size_t i = 0; i < arrays.size(); ++i)
      in.push_back(next.contains(model.inputs()[i].name) ? states[i] : select(arrays[i], 0, call));
    const Tensors out = run(in);
    for (std::size_t k = 0; k < out.size(); ++k) {
      results[k].push_back(out[k]);
      for (std::size_t i = 0; i < arrays.size(); ++i)
        if (const auto state = next.find(model.inputs()[i].name);
            state != next.end() && state->second == model.outputs()[k].name)
          states[i] = out[k];
    }
  }
  std::vector<io::NamedTensor> written;
  for (std::size_t k = 0; k < results.size(); ++k) written.push_back({model.outputs()[k].name, stack(results[k], 0)});
  io::write_npz(argv[3], written);
} catch (const std::exception& e) {
  std::cerr << "run_recorded: " << e.what() << '\n';
  return 1;
}
