#pragma once
/// A scan whose inputs arrive one step at a time: what a stream of a layer runs.
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"

namespace ferrite::detail {

/// A scan that stays open between its steps. Its body is traced and planned once; the plan stays bound to buffers that
/// are made with it, so a step does no shape rules, no searches, no allocations and takes no lock. What depends only on
/// tensors and variables from outside is computed when it is made and by `refresh`: a snapshot.
///
///   OpenScan scan(body, carries, xs);
///   fill(scan.x(0)); scan.run(); read(scan.y(0)); scan.commit();
///
/// The buffers hold row-major elements of the types given, aligned to 64 bytes. Carries begin as zeros. Not for use by
/// several threads at once.
class OpenScan {
 public:
  /// By which variable a variable that the body read is replaced; the value is taken from that one.
  using Substitute = std::function<Variable(const Variable&)>;

  /// Throws what the body throws while it is traced, ShapeError where a carry changes its type, and TraceError where it
  /// reads values of a tensor made inside or writes a variable.
  OpenScan(const ScanBodyFunction& body, std::span<const Spec> carries, std::span<const Spec> xs,
           const Substitute& substitute = {});
  /// A scan with the same values, on buffers of its own; the plan is shared.
  OpenScan(const OpenScan& o);
  OpenScan& operator=(const OpenScan&) = delete;
  ~OpenScan();

  std::size_t carries() const;
  /// Whether a step may throw because some operation refuses some values. All memory is allocated beforehand.
  bool may_fail() const;
  /// The type of one step of a y.
  const Spec& y_spec(std::size_t k) const;

  /// What the next step reads.
  std::byte* x(std::size_t k);
  /// What the last step gave, until the next one.
  const std::byte* y(std::size_t k) const;
  /// A carry as the next step reads it.
  std::byte* carry(std::size_t k);
  const std::byte* carry(std::size_t k) const;

  /// One step. The carries stay what they are until `commit`: what throws has changed nothing.
  void run();
  /// The carries become those that the last step gave.
  void commit();
  /// Takes the present values of the variables that the body read.
  void refresh();

 private:
  struct Program;
  struct Bound;
  std::unique_ptr<Bound> bound_;
};

}  // namespace ferrite::detail
