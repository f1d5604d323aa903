// Answers scripts/bench-gate: prints the names of all cells on one line, then reads lines "NAME CALLS" and answers each
// with the seconds and the user-space instructions that these calls took (-1 where they cannot be counted), or with
// "none" and the reason.
#include <exception>
#include <iostream>

#include "../instructions.h"
#include "cells.h"
#include "ferrite/tensor/denormals.h"

int main() {
  const ferrite::FlushDenormals guard;  // states of a net that has learned its batch decay to denormals
  std::vector<gate::Cell> cells = gate::layer_cells();
  for (const auto more : {gate::stream_cells, gate::operation_cells, gate::small_cells})
    for (gate::Cell& cell : more()) cells.push_back(std::move(cell));
  for (const gate::Cell& cell : cells) std::cout << cell.name << ' ';
  std::cout << std::endl;
  std::cout.precision(12);

  const bench::Instructions instructions;
  std::string name, last;
  std::int64_t calls = 0;
  gate::Run run;
  while (std::cin >> name >> calls) {
    try {
      if (name != last) {
        run = nullptr;  // frees its memory before the next cell is made
        last = name;
        for (const gate::Cell& cell : cells)
          if (cell.name == name) run = cell.make();
      }
      if (!run) {
        std::cout << "none there is no such cell" << std::endl;
        continue;
      }
      run();  // brings this program's data back into caches and pools
      instructions.start();
      const double begun = bench::now();
      for (std::int64_t i = 0; i < calls; ++i) run();
      const double spent = bench::now() - begun;
      std::cout << spent << ' ' << instructions.stop() << std::endl;
    } catch (const std::exception& e) {
      run = nullptr;
      std::cout << "none " << e.what() << std::endl;
    }
  }
}
