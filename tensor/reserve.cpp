/// Reserves: what the calls of a program ask for, kept for its next run.
#include "ferrite/tensor/reserve.h"

#include <algorithm>
#include <cstdlib>

#include "ferrite/tensor/detail/pool_blocks.h"

namespace ferrite::detail {

Reserve::~Reserve() {
  if (!held_) return;
  held_->free.free_all();
  held_->kept.clear();
  if (held_->out.load() == 0) delete held_;  // else a tensor lives on that returns there
}

Reserve::Open::Open(Reserve& reserve) : before_(std::exchange(open_reserve(), &reserve)) {}
Reserve::Open::~Open() { open_reserve() = before_; }

Reserve::Held& Reserve::held() {
  if (!held_) held_ = new Held;
  return *held_;
}

void* Reserve::kept(const void* key, std::shared_ptr<void> (*make)()) {
  if (!open_reserve()) return nullptr;
  auto& all = open_reserve()->held().kept;
  const auto at = std::find_if(all.begin(), all.end(), [key](const auto& k) { return k.first == key; });
  return at == all.end() ? all.emplace_back(key, make()).second.get() : at->second.get();
}

}  // namespace ferrite::detail
