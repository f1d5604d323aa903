#include "ferrite/nn/carry.h"

#include <algorithm>

#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {

std::vector<Tensor> Carry::save() const {
  std::vector<Tensor> all;
  for (const Entry& e : entries_)
    for (const State& s : e.states) all.push_back(s.peek());
  return all;
}

void Carry::restore(const std::vector<Tensor>& states) {
  std::vector<Entry> entries;
  for (const Tensor& s : states) entries.push_back({nullptr, {State("carry", s)}});
  entries_ = std::move(entries);
}

Carry::Entry* Carry::find(const void* owner, std::size_t count) {
  const auto is = [](const void* whose) { return [whose](const Entry& e) { return e.owner == whose; }; };
  const auto own = std::find_if(entries_.begin(), entries_.end(), is(owner));
  if (own != entries_.end()) return &*own;
  const auto free = std::find_if(entries_.begin(), entries_.end(), is(nullptr));  // restored, not yet asked for
  if (free == entries_.end()) return nullptr;
  if (static_cast<std::size_t>(entries_.end() - free) < count)
    throw ValueError("carry: a layer has " + std::to_string(count) + " states, fewer are left of those restored");
  for (std::size_t i = 1; i < count; ++i) free->states.push_back((free + static_cast<std::ptrdiff_t>(i))->states[0]);
  entries_.erase(free + 1, free + static_cast<std::ptrdiff_t>(count));
  free->owner = owner;
  return &*free;
}

const std::vector<State>& Carry::states_of(const void* owner, std::span<const Spec> wanted) {
  Entry* entry = find(owner, wanted.size());
  if (!entry) {
    const NewFrame frame;
    entries_.push_back({owner, {}});
    entry = &entries_.back();
    for (const Spec& s : wanted) entry->states.emplace_back("carry", zeros(s.shape, s.dtype));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Spec held{entry->states[i].shape(), entry->states[i].dtype()};
    if (held != wanted[i])
      throw ShapeError("carry: holds a state " + held.str() + ", the layer needs " + wanted[i].str() +
                       "; reset the carry for another batch");
  }
  return entry->states;
}

std::vector<Tensor> pieces(const Tensor& x, std::int64_t n) {
  if (n < 1) throw ValueError("pieces: the length must be positive, got " + std::to_string(n));
  if (x.rank() < 2) throw ShapeError("pieces: expects [B, T, ...], got " + x.shape().str());
  const Tensors parts = split(x, n, 1);
  return {parts.begin(), parts.end()};
}

}  // namespace ferrite::nn
