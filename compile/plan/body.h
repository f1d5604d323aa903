#pragma once
/// What a plan consists of, and the workspaces in which its calls run.
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

/// Packs w [K, N], f32 or f64, of any strides of which one is 1. The result stands in `room`, or with the storage of w
/// for as long as its elements are what they are.
PackedMatrix pack_matrix(const Tensor& w, Tensor& room);
/// Whether that can be done.
bool can_pack(const Tensor& w);

/// out [M, N] = a [M, K] . w: the bits of matmul. Rows of a are contiguous; out is row-major.
void packed_product(const Tensor& a, const PackedMatrix& w, const Tensor& out);

// ---- plans ------------------------------------------------------------------------------------------------

/// A window on a buffer, as operations that run alone take it.
struct PlannedTensor {
  std::uint32_t base = 0;
  std::int64_t offset = 0;  ///< bytes
  Spec spec;
  Shape strides;
};

/// One operation that runs alone.
struct PlannedCall {
  const Primitive* op = nullptr;
  Attrs attrs;
  std::vector<PlannedTensor> in;
  std::vector<PlannedTensor> out;
  Scope scope{};  ///< what its errors name
};

/// A matrix product whose rows the kernel of its step reads as soon as they are there.
struct PlannedProduct {
  int call = -1;
  std::uint32_t base = 0;      ///< in blocks of rows: what the kernel takes for the whole matrix; 0: it is whole
  std::int64_t offset = 0;     ///< bytes in the arena, of the block
  std::int64_t row_bytes = 0;  ///< of the result
};

struct PlannedStep {
  int kernel = -1;
  int call = -1;
  std::vector<PlannedProduct> products{};  ///< of a kernel
  std::int64_t rows = 0;                   ///< of these products
  std::int64_t block_rows = 0;             ///< so many at a time; 0: all
  std::int64_t block_tiles = 0;            ///< tiles of the kernel over so many rows
};

/// What runs, in order.
struct PlannedProgram {
  std::vector<Kernel> kernels;
  std::vector<PlannedCall> calls;
  std::vector<PlannedStep> steps;
};

/// Bases of places: the arena, then arguments, constants, results.
struct Bases {
  std::size_t arguments = 1;
  std::size_t constants = 1;
  std::size_t results = 1;
  std::size_t count = 1;
};

/// What a plan is given and gives.
struct PlanEnds {
  Bases bases{};
  std::vector<Tensor> constants{};  ///< in the order of their bases
  std::vector<ValueId> results{};   ///< values with a buffer of their own, in the order of their bases
  std::vector<std::size_t> of{};    ///< outputs, then written variables: which result each is
};

class PlanBody;

/// Where what belongs to a base begins.
struct Address {
  Storage* storage = nullptr;
  std::byte* first = nullptr;
};
/// The first element of a tensor; only read through it, unless the tensor is fresh.
inline Address address_of(const Tensor& t) { return {t.impl()->storage, t.impl()->first}; }

/// Memory and tensors of one call at a time.
class Workspace {
 public:
  explicit Workspace(const PlanBody& plan);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// What a call fills before it runs, by number: row-major tensors.
  std::vector<const Tensor*> arguments;
  /// Fresh tensors of the plan's results; whoever called takes them.
  std::vector<Tensor> results;
  /// Row-major copies of arguments that were not.
  std::vector<Tensor> copies;

  /// With `updates` results may take the buffers of the variables that they will be assigned to.
  void run(bool updates);
  /// The same where whoever calls has put every argument and every result in its place: `arguments`, `results` and
  /// `copies` are not looked at.
  void run_in_place();
  /// Runs each call, also behind one that throws Error: for the memory that they ask for.
  void try_in_place();
  void put(std::size_t base, const Address& address) {
    addresses_[base] = address;
    bases_[base] = address.first;
  }
  const Address& address(std::size_t base) const { return addresses_[base]; }
  std::byte* data(std::size_t base) const { return bases_[base]; }
  /// Computes the product that is this call from packed weights from now on, `none` to end that.
  void pack(std::size_t call, const PackedMatrix& weights) { packed_[call] = weights; }

 private:
  /// The tensors of one call, made once; those on arguments and results are pointed at their buffers in every run.
  struct Call {
    std::vector<Tensor> in, out;
    std::vector<const Tensor*> pointers;
  };
  struct Moving {
    TensorImpl* impl;
    std::uint32_t base;
    std::int64_t offset;  ///< bytes
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
  std::vector<PackedMatrix> packed_;  ///< by call
  std::vector<Address> addresses_;    ///< by base, in this run
};

/// Workspaces that nobody uses.
class WorkspacePool {
 public:
  /// One of them, made if there is none.
  std::unique_ptr<Workspace> take(const PlanBody& plan);
  void give_back(std::unique_ptr<Workspace> w) noexcept;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
  std::size_t made_ = 0;
};

/// What a profile calls the steps of a plan.
class StepNames {
 public:
  struct Name {
    Label kernel;  ///< as the report says it
    Scope layers;
  };
  /// Made by the first run that is profiled.
  const std::vector<Name>& of(const PlanReport& report) const;

 private:
  mutable std::once_flag made_;
  mutable std::vector<Name> names_;
};

/// A graph made ready to run.
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

/// A workspace for the time of a call.
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

/// What a plan is for.
enum class PlanFor : std::uint8_t {
  calls,    ///< each result is a tensor of its own
  windows,  ///< results are windows on stacks, something else may follow them
  steps,    ///< so too; whoever runs it packs what products multiply by, so that nothing is transposed here
};

/// What a plan does, but for its memory.
PlanReport describe_plan(const Graph& g, const Fused& fused, const PlanEnds& ends);

/// Simplifies, fuses, places.
std::unique_ptr<const PlanBody> make_plan(Graph graph, const PlanOptions& options, PlanFor use = PlanFor::calls);

}  // namespace ferrite::detail
