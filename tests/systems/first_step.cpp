// The first step that a stream makes on a thread that has done nothing before: on Windows it requests no memory, enters
// no critical section and touches none of the compiler's emulated variables of threads. Every causal word of the
// builder is tried. The linker puts the functions below in the place of those that they count (CMakeLists.txt).
#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <malloc.h>
#include <pthread.h>
#include <windows.h>

#include <array>
#include <atomic>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "dsl/layer_catalogue.h"
#include "ferrite/nn/stream/stream.h"

namespace {

/// Counts calls while `on`, when a single thread runs.
struct Count {
  const char* of;
  std::atomic<int> calls{0};
};
std::atomic<bool> on{false};
Count blocks{"requests for memory"}, heap{"requests to the heap"}, mutexes{"mutexes"}, sections{"critical sections"},
    emulated{"emulated variables of threads"};
const std::array<Count*, 5> all = {&blocks, &heap, &mutexes, &sections, &emulated};

void count(Count& c) {
  if (on.load(std::memory_order_relaxed)) c.calls.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// NOLINTBEGIN: the linker's names
extern "C" {
void* __real_malloc(std::size_t n);
void* __wrap_malloc(std::size_t n) {
  count(blocks);
  return __real_malloc(n);
}
void* __real_calloc(std::size_t n, std::size_t size);
void* __wrap_calloc(std::size_t n, std::size_t size) {
  count(blocks);
  return __real_calloc(n, size);
}
void* __real_realloc(void* p, std::size_t n);
void* __wrap_realloc(void* p, std::size_t n) {
  count(blocks);
  return __real_realloc(p, n);
}
int __real_pthread_mutex_lock(pthread_mutex_t* m);
int __wrap_pthread_mutex_lock(pthread_mutex_t* m) {
  count(mutexes);
  return __real_pthread_mutex_lock(m);
}
#if !defined(__clang__)
void* __real___emutls_get_address(void* variable);
void* __wrap___emutls_get_address(void* variable) {
  count(emulated);
  return __real___emutls_get_address(variable);
}
#endif

// Functions of the system are called through pointers.
using Aligned = void* (*)(std::size_t, std::size_t);
extern Aligned __real___imp__aligned_malloc;
static void* counted_aligned(std::size_t n, std::size_t alignment) {
  count(blocks);
  return __real___imp__aligned_malloc(n, alignment);
}
Aligned __wrap___imp__aligned_malloc = counted_aligned;
using Enter = void(WINAPI*)(CRITICAL_SECTION*);
extern Enter __real___imp_EnterCriticalSection;
static void WINAPI counted_enter(CRITICAL_SECTION* section) {
  count(sections);
  __real___imp_EnterCriticalSection(section);
}
Enter __wrap___imp_EnterCriticalSection = counted_enter;
using Allocate = void*(WINAPI*)(HANDLE, DWORD, SIZE_T);
extern Allocate __real___imp_HeapAlloc;
static void* WINAPI counted_heap(HANDLE of, DWORD flags, SIZE_T n) {
  count(heap);
  return __real___imp_HeapAlloc(of, flags, n);
}
Allocate __wrap___imp_HeapAlloc = counted_heap;
}
// NOLINTEND

namespace {

using namespace ferrite;

int tried = 0, failures = 0;

template <class T>
void first_step(nn::Stream& stream, std::vector<T> x) {
  std::vector<float> y(static_cast<std::size_t>(stream.result().width));
  const std::span<const T> in(x);
  std::thread([&] {
    on = true;
    stream.feed(in, y);
    on = false;
  }).join();
}

void try_net(const std::string& name, const dsl::Network& net) {
  nn::Stream stream = net.stream();
  if (stream.result().width == 0 || stream.on_tensors() > 0) return;  // the first step also prepares the others
  for (Count* c : all) c->calls = 0;
  const Tensor x = layer_catalogue::input(net, 1, Dtype::f32, 1);
  if (x.dtype() == Dtype::f32) {
    first_step(stream, x.to_vector<float>());
  } else {
    first_step(stream, x.to_vector<std::int64_t>());
  }
  ++tried;
  for (const Count* c : all) {
    if (c->calls == 0) continue;
    ++failures;
    std::cout << name << ": " << c->calls << " " << c->of << '\n';
  }
}

/// Returns whether what is counted is seen at all.
bool counts_something() {
  on = true;
  const std::unique_ptr<int> memory(new int(tried));
  std::vector<double> more(static_cast<std::size_t>(*memory) + 1000);
  on = false;
  return blocks.calls >= 2 && more.size() == 1000;
}

}  // namespace

int main() {
  if (!counts_something()) {
    std::cout << "requests for memory are not counted\n";
    return 1;
  }
  for (const auto& [word, nets] : layer_catalogue::catalogue(Dtype::f32))
    for (std::size_t i = 0; i < nets.size(); ++i) {
      const dsl::Network net = nets[i]().build(1);
      net.eval();
      try_net(word + " " + std::to_string(i), net);
    }
  std::cout << tried << " nets, " << failures << " counts above 0\n";
  return tried >= 40 && failures == 0 ? 0 : 1;
}
