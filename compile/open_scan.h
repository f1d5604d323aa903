#pragma once
/// Scans whose inputs arrive one step at a time, as streams of layers run them.
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"

namespace ferrite::detail {

/// A scan that stays open between its steps. Its body is traced and planned once. The plan stays bound to its buffers,
/// so a step applies no shape rules, searches nothing, allocates nothing and takes no lock. Values that depend only on
/// tensors and variables from outside are a snapshot: the constructor and `refresh` compute them.
///
///   OpenScan scan(body, carries, xs);
///   fill(scan.x(0)); scan.run(); read(scan.y(0)); scan.commit();
///
/// The buffers hold row-major elements of the given types, aligned to 64 bytes. Carries begin as zeros. Not
/// thread-safe.
class OpenScan {
 public:
  /// Maps a variable that the body read to the variable whose value is used instead.
  using Substitute = std::function<Variable(const Variable&)>;

  /// Traces and plans the body. Throws what the body throws while it is traced, ShapeError where a carry changes its
  /// type, and TraceError where it reads values of a tensor made inside or writes a variable.
  OpenScan(const ScanBodyFunction& body, std::span<const Spec> carries, std::span<const Spec> xs,
           const Substitute& substitute = {});
  /// Makes a scan with the same values in its own buffers; the plan is shared.
  OpenScan(const OpenScan& o);
  OpenScan& operator=(const OpenScan&) = delete;
  ~OpenScan();

  /// Returns the number of carries.
  std::size_t carries() const;
  /// Returns whether a step may throw, because some operation refuses some values or communicates.
  bool may_fail() const;
  /// Returns the type of one step of the k-th y.
  const Spec& y_spec(std::size_t k) const;

  /// Returns the buffer of the k-th x, which the next step reads.
  std::byte* x(std::size_t k);
  /// Returns the k-th y of the last step, valid until the next one.
  const std::byte* y(std::size_t k) const;
  /// Returns the k-th carry, as the next step reads it.
  std::byte* carry(std::size_t k);
  const std::byte* carry(std::size_t k) const;

  /// Runs one step. The carries stay what they are until `commit`, so a step that throws changes nothing.
  void run();
  /// Replaces the carries by those that the last step computed.
  void commit();
  /// Takes the present values of the variables that the body read.
  void refresh();

 private:
  struct Program;
  struct Bound;
  std::unique_ptr<Bound> bound_;
};

}  // namespace ferrite::detail
