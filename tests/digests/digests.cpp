// Turns cases into lines: runs each eagerly and planned, and prints digests of the results, its program, plan and
// costs.
#include "digests.h"

#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <typeinfo>

#include "alloc/counted.h"
#include "digest.h"
#include "ferrite/compile/passes.h"
#include "support/derivative.h"

namespace digests {
namespace {

constexpr const char* kOrders[] = {"values", "gradients", "second"};

/// The results of a run, or its typed error.
struct Outcome {
  Tensors results{};
  std::string error{};
};

std::string type_of(const std::exception& e) {
  int status = 0;
  char* const name = abi::__cxa_demangle(typeid(e).name(), nullptr, nullptr, &status);
  std::string s = status == 0 ? name : typeid(e).name();
  std::free(name);
  return s;
}

template <class F>
Outcome outcome_of(F&& f) {
  try {
    return {f(), {}};
  } catch (const std::exception& e) {
    return {{}, type_of(e) + ": " + e.what()};
  }
}

/// Returns the elements of a tensor, one a line, so that a difference shows those that changed.
std::string elements(const Tensor& t) {
  std::string s;
  std::size_t i = 0;
  visit_dtype(t.dtype(), [&](auto zero) {
    for (const auto v : t.to_vector<decltype(zero)>()) {
      char text[80];
      std::snprintf(text, sizeof text, "\n  [%zu] %.17g (%a)", i++, static_cast<double>(v), static_cast<double>(v));
      s += text;
    }
  });
  return s;
}

std::string describe(const Outcome& o, bool full) {
  if (!o.error.empty()) return "error " + o.error;
  std::string s = digest_of(o.results);
  for (const Tensor& t : o.results) {
    s += " " + (t.defined() ? t.spec().str() : "undefined");
    if (full && t.defined()) s += elements(t) + "\n";
  }
  return s;
}

/// Describes a program: its digest, and how often it applies each operation.
std::string describe(const Graph& g, bool full) {
  const std::string program = g.str();
  std::map<std::string, int> counts;
  for (const Graph::Node& n : g.nodes) ++counts[std::string(n.op->name)];
  std::string s = digest_of(program) + " " + std::to_string(g.nodes.size()) + " nodes, " +
                  std::to_string(g.constants.size()) + " constants:";
  for (const auto& [name, count] : counts) s += " " + name + " " + std::to_string(count);
  return full ? s + "\n" + program : s;
}

/// Exports the simplified program as StableHLO.
std::string exported(Graph g, bool full) {
  try {
    passes::simplify(g);
    const std::string program = exchange::to_stablehlo(g);
    const std::string s = digest_of(program) + " " + std::to_string(program.size()) + " bytes";
    return full ? s + "\n" + program : s;
  } catch (const Error& e) {
    return "error " + type_of(e) + ": " + e.what();
  }
}

void describe_plan(Printer& out, const std::string& section, const Graph& traced, const Plan& plan) {
  out.line(section + ".traced", describe(traced, out.full()));
  out.line(section + ".graph", describe(plan.graph(), out.full()));
  out.line(section + ".export", exported(traced, out.full()));
  out.line(section + ".plan", plan.report().str());
  for (const std::string& scan : scans_of(plan.graph())) out.line(section + ".scan", scan);
}

Specs specs_of(const Tensors& in) {
  Specs s;
  for (const Tensor& x : in) s.push_back(x.spec());
  return s;
}

Graph traced(const std::function<Tensors(const Tensors&)>& f, const Tensors& in) {
  const Specs s = specs_of(in);
  return trace(f, {s.data(), s.size()});
}

/// Returns the allocations and pool misses of the fourth run.
template <class Run>
std::string cost_of(Run&& run) {
  for (int i = 0; i < 3; ++i) run();
  const PoolCounts pool = pool_counts();
  const counted::Counts before = counted::counts();
  run();
  const counted::Counts after = counted::counts();
  const PoolCounts now = pool_counts();
  return std::to_string(after.allocations - before.allocations) + " allocations, " +
         std::to_string(after.maps - before.maps) + " maps, " + std::to_string(after.locks - before.locks) +
         " locks, " + std::to_string(now.requests - pool.requests) + " blocks of the pool (" +
         std::to_string(now.misses - pool.misses) + " from the system)";
}

/// Describes what a tape keeps of a program until its end: applications, and the bytes that it then returns to the
/// pool.
std::string saved_by(const Instance& p) {
  trim();
  auto tape = std::make_unique<Tape>();
  {
    Tensors in;
    for (const Tensor& x : p.inputs) in.push_back(is_float(x.dtype()) ? tape->watch(x) : x);
    (void)support::weighted_sum(p.f(in));
  }
  const std::size_t entries = tape->size(), before = cached_memory();
  tape.reset();
  return std::to_string(entries) + " applications, " + std::to_string(cached_memory() - before) + " bytes";
}

void compare(Printer& out, const std::string& section, const Outcome& got, const Outcome& wanted, Planned how) {
  if (how == Planned::own)
    out.line(section, describe(got, out.full()));
  else if (describe(got, false) != describe(wanted, false))
    out.fault(section, describe(got, out.full()));
}

void run_order(Printer& out, const Make& make, int order, bool costs, Planned how) {
  const std::string section = kOrders[order];
  const auto f_of = [order](const Instance& p) {
    return [&p, order](const Tensors& in) { return support::derivative(p.f, in, p.parameters, order); };
  };
  Instance first, second;
  const Outcome eager = outcome_of([&] {
    first = make();
    return f_of(first)(first.inputs);
  });
  out.line(section, describe(eager, out.full()));

  std::unique_ptr<Graph> graph;
  std::unique_ptr<Plan> plan;
  const Outcome got = outcome_of([&] {
    second = make();
    graph = std::make_unique<Graph>(traced(f_of(second), second.inputs));
    plan = std::make_unique<Plan>(*graph);
    return plan->run(std::span<const Tensor>(second.inputs.data(), second.inputs.size()));
  });
  // Of several errors, those of shapes are found while tracing, before any value is read.
  const bool refused_by_both = !plan && !got.error.empty() && !eager.error.empty();
  if (!refused_by_both) compare(out, section + ".planned", got, eager, how);
  if (plan) describe_plan(out, section, *graph, *plan);
  if (!costs || !eager.error.empty() || !got.error.empty()) return;
  out.line(section + ".cost.eager", cost_of([&] { (void)f_of(first)(first.inputs); }));
  out.line(section + ".cost.planned",
           cost_of([&] { (void)plan->run(std::span<const Tensor>(second.inputs.data(), second.inputs.size())); }));
}

}  // namespace

void Printer::line(const std::string& section, std::string text) {
  std::string joined;
  for (const char c : text) joined += c == '\n' ? std::string(" | ") : std::string(1, c);
  while (joined.ends_with(" ") || joined.ends_with("|")) joined.pop_back();
  out_ << name_ << ' ' << section << ' ' << joined << '\n';
}

void Printer::fault(const std::string& section, const std::string& text) {
  failed_ = true;
  line(section + ".FAULT", text);
}

Case derivatives(const std::string& name, Make make, bool costs, Planned planned) {
  return {name, [=](Printer& out) {
            for (int order = 0; order < 3; ++order) run_order(out, make, order, costs, planned);
            std::string saved;
            const Outcome o = outcome_of([&] {
              saved = saved_by(make());
              return Tensors{};
            });
            out.line("saved", o.error.empty() ? saved : describe(o, false));
          }};
}

Case training(const std::string& name, std::function<Training()> make, Planned planned) {
  return {name, [=](Printer& out) {
            constexpr int kSteps = 5;
            const auto run = [&](const Training& t, const auto& step) {
              Tensors all;
              for (int i = 0; i < kSteps; ++i)
                for (const Tensor& x : step(t.inputs)) all.push_back(x);
              for (const Variable& c : t.variables) all.push_back(c.peek());
              return all;
            };
            const Training first = make(), second = make();
            const auto compiled = compile([&](const Tensors& in) { return second.step(in); });
            const Outcome eager = outcome_of([&] { return run(first, first.step); });
            const Outcome got = outcome_of([&] { return run(second, compiled); });
            out.line("values", describe(eager, out.full()));
            compare(out, "values.compiled", got, eager, planned);
            if (!eager.error.empty() || !got.error.empty()) return;
            describe_plan(out, "values", compiled.graph(), Plan(compiled.graph()));
            out.line("values.cost.eager", cost_of([&] { (void)first.step(first.inputs); }));
            out.line("values.cost.compiled", cost_of([&] { (void)compiled(second.inputs); }));
          }};
}

Case streamed(const std::string& name, std::function<std::unique_ptr<nn::Layer>()> make, const Tensor& x) {
  return {name, [=](Printer& out) {
            const std::int64_t T = x.shape()[0], B = x.shape()[1];
            const std::unique_ptr<nn::Layer> layer = make();
            layer->eval();
            const Tensor wanted = contiguous(transpose((*layer)(contiguous(transpose(x, 0, 1))), 0, 1));
            const std::vector<float> in = x.to_vector<float>();
            std::vector<float> y(static_cast<std::size_t>(wanted.numel()));
            nn::Stream stream = layer->stream(B);
            stream.steps(T, in, y);
            const Tensor got = Tensor::from(y, wanted.shape());
            Tensors all{got};
            for (const Tensor& s : stream.save()) all.push_back(s);
            out.line("values", describe({all, {}}, out.full()));
            if (digest_of({got}) != digest_of({wanted}))
              out.fault("values.whole", describe({{wanted}, {}}, out.full()));
            out.line("values.plan", std::to_string(stream.on_tensors()) + " layers on tensors");
            const std::size_t d = in.size() / static_cast<std::size_t>(T), n = y.size() / static_cast<std::size_t>(T);
            stream.reset();  // growing states have room for the counted steps
            out.line("values.cost.step",
                     cost_of([&] { stream.step(std::span<const float>(in).first(d), std::span<float>(y).first(n)); }));
          }};
}

Case values(const std::string& name, std::function<Tensors()> f) {
  return {name, [=](Printer& out) { out.line("values", describe(outcome_of(f), out.full())); }};
}

Case text(const std::string& name, const std::string& section, std::function<std::string()> f) {
  return {name, [=](Printer& out) { out.line(section, f()); }};
}

}  // namespace digests
