#pragma once
/// The parts of a plan, and the workspaces in which its calls run.
#include <mutex>

#include "ferrite/compile/fuse/kernel.h"
#include "ferrite/compile/plan.h"
#include "ferrite/tensor/profiled.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

// ---- products with weights that many steps share, packed once for all of them -----------------------------

/// A matrix [K, N] in the order in which `packed_product` reads it. Borrowed: whoever made it keeps the memory.
struct PackedMatrix {
  const void* data = nullptr;
  std::int64_t K = 0;
  std::int64_t N = 0;
  explicit operator bool() const { return data != nullptr; }
};

/// Packs w [K, N], f32 or f64, with any strides of which one is 1. The result is stored in `room`, or with the storage
/// of w for as long as its elements do not change.
PackedMatrix pack_matrix(const Tensor& w, Tensor& room);
/// Returns whether `pack_matrix` can pack w.
bool can_pack(const Tensor& w);

/// Computes out [M, N] = a [M, K] . w with the bits of matmul. Rows of a are contiguous; out is row-major.
void packed_product(const Tensor& a, const PackedMatrix& w, const Tensor& out);

// ---- plans ------------------------------------------------------------------------------------------------

/// A window on a buffer, as operations that run alone read or write it.
struct PlannedTensor {
  std::uint32_t base = 0;
  std::int64_t offset = 0;  ///< of the first element, in bytes
  Spec spec;
  Shape strides;
};

/// An operation that runs alone, with its operands and results.
struct PlannedCall {
  const Primitive* op = nullptr;
  Attrs attrs;
  std::vector<PlannedTensor> in;
  std::vector<PlannedTensor> out;
  Scope scope{};  ///< the layer that its errors name
};

/// A matrix product whose rows the kernel of its step reads as soon as they are there.
struct PlannedProduct {
  int call = -1;
  std::uint32_t base = 0;      ///< in blocks of rows: base that the kernel takes for the whole matrix; 0: it is whole
  std::int64_t offset = 0;     ///< of the block in the arena, in bytes
  std::int64_t row_bytes = 0;  ///< bytes of a row of the result
};

/// A step of a plan: a kernel with the products that run in it, or an operation that runs alone.
struct PlannedStep {
  int kernel = -1;
  int call = -1;
  std::vector<PlannedProduct> products{};  ///< products that run with the kernel
  std::int64_t rows = 0;                   ///< number of rows of these products
  std::int64_t block_rows = 0;             ///< number of rows computed at a time; 0 for all
  std::int64_t block_tiles = 0;            ///< number of the kernel's tiles over these rows
};

/// The kernels, calls and steps of a plan, in the order in which they run.
struct PlannedProgram {
  std::vector<Kernel> kernels;
  std::vector<PlannedCall> calls;
  std::vector<PlannedStep> steps;
};

/// The first base of each kind of place: the arena is 0, then come arguments, constants, results.
struct Bases {
  std::size_t arguments = 1;
  std::size_t constants = 1;
  std::size_t results = 1;
  std::size_t count = 1;
};

/// The inputs and outputs of a plan.
struct PlanEnds {
  Bases bases{};
  std::vector<Tensor> constants{};  ///< in the order of their bases
  std::vector<ValueId> results{};   ///< values with their own buffers, in the order of their bases
  std::vector<std::size_t> of{};    ///< by output, then by written variable: its index in `results`
};

class PlanBody;

/// The address of the memory that belongs to a base.
struct Address {
  Storage* storage = nullptr;
  std::byte* first = nullptr;
};
/// Returns the address of the first element of a tensor; only to be read, unless the tensor is fresh.
inline Address address_of(const Tensor& t) { return {t.impl()->storage, t.impl()->first}; }

/// The memory and tensors of one call at a time.
class Workspace {
 public:
  explicit Workspace(const PlanBody& plan);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Row-major arguments of a call, in the order of their bases. The caller fills them before it runs.
  std::vector<const Tensor*> arguments;
  /// Fresh tensors of the plan's results; the caller takes them.
  std::vector<Tensor> results;
  /// Row-major copies of arguments that were not row-major.
  std::vector<Tensor> copies;

  /// Runs the plan. With `updates`, results may take the buffers of the variables that they will be assigned to.
  void run(bool updates);
  /// Runs the plan when the caller has put every argument and every result in its place: `arguments`, `results` and
  /// `copies` are not used.
  void run_in_place();
  /// Runs every call, even after one that throws Error, so that their demand for memory can be observed.
  void try_in_place();
  void put(std::size_t base, const Address& address) {
    addresses_[base] = address;
    bases_[base] = address.first;
  }
  const Address& address(std::size_t base) const { return addresses_[base]; }
  std::byte* data(std::size_t base) const { return bases_[base]; }
  /// Computes the product `call` from packed weights from now on; an empty matrix ends that.
  void pack(std::size_t call, const PackedMatrix& weights) { packed_[call] = weights; }

 private:
  /// The tensors of one call, made once; those on arguments and results are set to their buffers in every run.
  struct Call {
    std::vector<Tensor> in, out;
    std::vector<const Tensor*> pointers;
  };
  struct Moving {
    TensorImpl* impl;
    std::uint32_t base;
    std::int64_t offset;  ///< of the first element, in bytes
  };
  void make(const PlannedTensor& t, Tensor& tensor);
  void bind(bool updates);
  void point();
  template <class F>
  void run_step(const PlannedStep& s, const F& product);
  void run_profiled();
  void call(int index);
  void call_product(int index);
  void run_products(const PlannedStep& s);
  void take_rows(const PlannedProduct& p, std::int64_t first, std::int64_t rows);

  const PlanBody& plan_;
  Tensor arena_;
  std::vector<std::byte*> bases_;
  std::vector<TensorImpl*> windows_;
  std::vector<Moving> moving_;
  std::vector<Call> calls_;
  std::vector<PackedMatrix> packed_;  ///< by call: its packed weights, if any
  std::vector<Address> addresses_;    ///< by base, in this run
};

/// The idle workspaces of a plan.
class WorkspacePool {
 public:
  /// Returns an idle workspace, or a new one if there is none.
  std::unique_ptr<Workspace> take(const PlanBody& plan);
  void give_back(std::unique_ptr<Workspace> w) noexcept;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
  std::size_t made_ = 0;
};

/// The names of a plan's steps in a profile.
class StepNames {
 public:
  struct Name {
    Label kernel;  ///< operations, as the report names them
    Scope layers;
  };
  /// Returns the names of the steps. They are made by the first run that is profiled.
  const std::vector<Name>& of(const PlanReport& report) const;

 private:
  mutable std::once_flag made_;
  mutable std::vector<Name> names_;
};

/// The contents of a plan: a graph made ready to run.
class PlanBody {
 public:
  Graph graph;
  PlannedProgram program;
  PlanEnds ends;
  std::vector<std::int64_t> updates;  ///< by result: the argument, a variable, whose buffer it may take; else -1
  std::int64_t arena_bytes = 0;
  PlanReport report;
  mutable WorkspacePool workspaces{};
  StepNames names{};
};

/// A workspace that is borrowed from the pool for the time of a call.
class Borrowed {
 public:
  explicit Borrowed(const PlanBody& plan) : plan_(plan), workspace_(plan.workspaces.take(plan)) {}
  ~Borrowed() { plan_.workspaces.give_back(std::move(workspace_)); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Workspace& operator*() const { return *workspace_; }
  Workspace* operator->() const { return workspace_.get(); }

 private:
  const PlanBody& plan_;
  std::unique_ptr<Workspace> workspace_;
};

/// The use for which a plan is made.
enum class PlanFor : std::uint8_t {
  calls,    ///< each result is a separate tensor
  windows,  ///< results are windows on stacks, in which other elements may follow
  steps,    ///< as `windows`; the caller also packs the right operands of products, so nothing is transposed here
};

/// Prepares a graph for fusion: simplifies it, adds operations that only plans know, and gives every result a buffer.
Graph prepared(Graph g, const PlanOptions& options, PlanFor use);

/// Returns the report of a plan, without the sizes of its memory.
PlanReport describe_plan(const Graph& g, const Fused& fused, const PlanEnds& ends);

/// Makes a plan: simplifies and fuses the graph and places its buffers.
std::unique_ptr<const PlanBody> make_plan(Graph graph, const PlanOptions& options, PlanFor use = PlanFor::calls);

}  // namespace ferrite::detail
