#pragma once
/// Circuits of resistors, capacitors and triodes, solved sample by sample.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "biquad.h"

namespace nets {

/// The current of a triode, in ampere, and its derivatives by both voltages.
struct TriodeCurrent {
  double value = 0, by_grid = 0, by_plate = 0;
};

/// Returns the plate current of a 12AX7 by the formula of N. Koren ("Improved vacuum tube models for SPICE
/// simulations", Glass Audio 8, 1996): grid and plate voltages are those against the cathode.
inline TriodeCurrent plate_current(double grid, double plate) {
  constexpr double mu = 100, exponent = 1.4, kg1 = 1060, kp = 600, kvb = 300;
  const double root = std::sqrt(kvb + plate * plate), u = kp * (1 / mu + grid / root);
  const double log_term = u > 30 ? u : std::log1p(std::exp(u)), slope = 1 / (1 + std::exp(-u));
  const double e = plate / kp * log_term;
  if (!(e > 0)) return {};
  const double power = std::pow(e, exponent - 1), factor = 2 * exponent * power / kg1;
  return {2 * e * power / kg1, factor * slope * plate / root,
          factor * (log_term / kp - slope * grid * plate * plate / (root * root * root))};
}

/// Returns the current into the grid of a 12AX7, which flows once the grid is more positive than the cathode (the form
/// of I. Cohen and T. Helie, "Measures and parameter estimation of triodes for the real-time simulation of a
/// multi-stage guitar preamplifier", AES Convention 129, 2010).
inline TriodeCurrent grid_current(double grid) {
  constexpr double scale = 6e-4, exponent = 1.3, steepness = 10;
  const double u = steepness * grid, smooth = (u > 30 ? u : std::log1p(std::exp(u))) / steepness;
  const double power = scale * std::pow(smooth, exponent - 1);
  return {power * smooth, exponent * power / (1 + std::exp(-u)), 0};
}

/// A circuit: nodes joined by parts. Capacitors follow the trapezoidal rule. All linear parts are eliminated when the
/// circuit is prepared, so a sample takes one product with a matrix and Newton's method on two voltages per triode
/// (the nodal DK method; D. Yeh, J. Abel, J. Smith, "Automated physical modeling of nonlinear audio circuits", 2010).
class Circuit {
 public:
  using Node = std::size_t;
  static constexpr Node ground = 0;

  Node node() { return ++nodes_; }
  void resistor(Node a, Node b, double ohm) { resistors_.push_back({a, b, 1 / ohm}); }
  void capacitor(Node a, Node b, double farad) { capacitors_.push_back({a, b, farad}); }
  /// Adds a constant voltage that reaches a node through a resistor, as the supply does.
  void supply(Node a, double ohm, double volt) {
    resistor(a, ground, ohm);
    supplies_.push_back({a, ground, volt / ohm});
  }
  /// Adds the voltage of the input, which reaches a node through a resistor.
  void input(Node a, double ohm) {
    resistor(a, ground, ohm);
    inputs_.push_back({a, ground, 1 / ohm});
  }
  void triode(Node plate, Node grid, Node cathode) {
    ports_.emplace_back(grid, cathode);
    ports_.emplace_back(plate, cathode);
  }

  /// Chooses the number of samples per second and lets the circuit settle: capacitors charge for a second.
  void prepare(double rate) {
    std::vector<double> g(nodes_ * nodes_, 0.0);
    for (const Part& r : resistors_) conduct(g, r);
    for (Part& c : capacitors_) c.value *= 2 * rate;
    for (const Part& c : capacitors_) conduct(g, c);
    inverse_ = inverted(std::move(g));
    voltage_.assign(nodes_ + 1, 0.0);
    history_.assign(capacitors_.size(), 0.0);
    port_.assign(ports_.size(), 0.0);
    const std::size_t n = ports_.size();
    coupling_.assign(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        coupling_[i * n + j] = resistance(ports_[i].first, ports_[j]) - resistance(ports_[i].second, ports_[j]);
    for (int t = 0; t < static_cast<int>(rate); ++t) step(0);
  }

  /// Advances by one sample of the input, in volt.
  void step(double input) {
    std::vector<double>& current = current_;
    current.assign(nodes_ + 1, 0.0);
    for (const Part& s : supplies_) current[s.a] += s.value;
    for (const Part& s : inputs_) current[s.a] += s.value * input;
    for (std::size_t i = 0; i < capacitors_.size(); ++i) {
      current[capacitors_[i].a] += history_[i];
      current[capacitors_[i].b] -= history_[i];
    }
    if (!ports_.empty()) solve_triodes(current);
    multiply(current);
    for (std::size_t i = 0; i < capacitors_.size(); ++i) {  // the history is g v + i, where i = g v - history before
      const Part& c = capacitors_[i];
      history_[i] = 2 * c.value * (voltage_[c.a] - voltage_[c.b]) - history_[i];
    }
  }
  /// Returns the voltage of a node after the last step.
  double voltage(Node a) const { return voltage_[a]; }

 private:
  struct Part {
    Node a, b;
    double value;  ///< conductance, capacitance or current
  };
  using Port = std::pair<Node, Node>;

  void conduct(std::vector<double>& g, const Part& p) const {
    const auto at = [&](Node a, Node b) -> double& { return g[(a - 1) * nodes_ + b - 1]; };
    if (p.a) at(p.a, p.a) += p.value;
    if (p.b) at(p.b, p.b) += p.value;
    if (p.a && p.b) at(p.a, p.b) -= p.value, at(p.b, p.a) -= p.value;
  }
  /// Returns the voltage of a node for a current of 1 A out of one end of a port and into the other.
  double resistance(Node a, const Port& p) const {
    const auto at = [&](Node b) { return a && b ? inverse_[(a - 1) * nodes_ + b - 1] : 0.0; };
    return at(p.second) - at(p.first);
  }
  void multiply(const std::vector<double>& current) {
    for (Node a = 1; a <= nodes_; ++a) {
      double sum = 0;
      for (Node b = 1; b <= nodes_; ++b) sum += inverse_[(a - 1) * nodes_ + b - 1] * current[b];
      voltage_[a] = sum;
    }
  }
  std::vector<double> inverted(std::vector<double> g) const {
    std::vector<double> inverse(nodes_ * nodes_, 0.0);
    for (std::size_t i = 0; i < nodes_; ++i) {
      std::vector<double> unit(nodes_, 0.0), matrix = g;
      unit[i] = 1;
      eliminate(matrix, unit);
      for (std::size_t j = 0; j < nodes_; ++j) inverse[j * nodes_ + i] = unit[j];
    }
    return inverse;
  }
  /// Solves m x = b in place, with pivots by rows.
  static void eliminate(std::vector<double>& m, std::vector<double>& b) {
    const std::size_t n = b.size();
    for (std::size_t k = 0; k < n; ++k) {
      std::size_t pivot = k;
      for (std::size_t i = k + 1; i < n; ++i)
        if (std::fabs(m[i * n + k]) > std::fabs(m[pivot * n + k])) pivot = i;
      if (m[pivot * n + k] == 0) throw std::runtime_error("circuit: a node has no path to ground");
      for (std::size_t j = 0; pivot != k && j < n; ++j) std::swap(m[pivot * n + j], m[k * n + j]);
      std::swap(b[pivot], b[k]);
      for (std::size_t i = k + 1; i < n; ++i) {
        const double f = m[i * n + k] / m[k * n + k];
        for (std::size_t j = k; j < n; ++j) m[i * n + j] -= f * m[k * n + j];
        b[i] -= f * b[k];
      }
    }
    for (std::size_t k = n; k-- > 0;) {
      for (std::size_t j = k + 1; j < n; ++j) b[k] -= m[k * n + j] * b[j];
      b[k] /= m[k * n + k];
    }
  }

  /// Finds the voltages of the triodes, v = v0 + K i(v), and adds their currents.
  void solve_triodes(std::vector<double>& current) {
    const std::size_t n = ports_.size();
    multiply(current);
    base_.resize(n), element_.resize(n), step_.resize(n), matrix_.resize(n * n);
    for (std::size_t i = 0; i < n; ++i) base_[i] = voltage_[ports_[i].first] - voltage_[ports_[i].second];
    for (int iteration = 0;; ++iteration) {
      if (iteration == 100) throw std::runtime_error("circuit: Newton's method does not converge");
      for (std::size_t i = 0; i < n; i += 2) {
        element_[i] = grid_current(port_[i]);
        element_[i + 1] = plate_current(port_[i], port_[i + 1]);
      }
      for (std::size_t i = 0; i < n; ++i) {
        double residual = base_[i] - port_[i];
        for (std::size_t j = 0; j < n; ++j) residual += coupling_[i * n + j] * element_[j].value;
        step_[i] = residual;
        for (std::size_t j = 0; j < n; j += 2) {
          const double to_grid = coupling_[i * n + j], to_plate = coupling_[i * n + j + 1];
          matrix_[i * n + j] = -(to_grid * element_[j].by_grid + to_plate * element_[j + 1].by_grid);
          matrix_[i * n + j + 1] = -to_plate * element_[j + 1].by_plate;
        }
        matrix_[i * n + i] += 1;
      }
      eliminate(matrix_, step_);
      double largest = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double most = i % 2 == 0 ? 2 : 50;                                     // a grid moves less than a plate
        port_[i] += (iteration < 10 ? 1 : 0.5) * std::clamp(step_[i], -most, most);  // a half step ends cycles
        largest = std::max(largest, std::fabs(step_[i]));
      }
      if (largest < 1e-7) break;
    }
    for (std::size_t i = 0; i < n; i += 2) {
      element_[i] = grid_current(port_[i]);
      element_[i + 1] = plate_current(port_[i], port_[i + 1]);
    }
    for (std::size_t i = 0; i < n; ++i) {
      current[ports_[i].first] -= element_[i].value;
      current[ports_[i].second] += element_[i].value;
    }
  }

  std::size_t nodes_ = 0;
  std::vector<Part> resistors_, capacitors_, supplies_, inputs_;
  std::vector<Port> ports_;  ///< of each triode: grid and cathode, plate and cathode
  std::vector<double> inverse_, coupling_, voltage_, history_, port_;
  std::vector<double> current_, base_, step_, matrix_;
  std::vector<TriodeCurrent> element_;
};

/// Returns the amplifier's circuit: two stages of a 12AX7 at 300 V with a gain control between them, and a control of
/// treble, middle and bass. The signal is at `out`.
inline Circuit amplifier_circuit(Circuit::Node& out) {
  Circuit c;
  const auto ground = Circuit::ground;
  const auto grid1 = c.node(), plate1 = c.node(), cathode1 = c.node();
  c.input(grid1, 68e3), c.resistor(grid1, ground, 1e6), c.capacitor(grid1, plate1, 3e-12);
  c.supply(plate1, 100e3, 300);
  c.resistor(cathode1, ground, 1.5e3), c.capacitor(cathode1, ground, 2.2e-6);
  c.triode(plate1, grid1, cathode1);

  const auto gain = c.node(), grid2 = c.node(), plate2 = c.node(), cathode2 = c.node();
  c.capacitor(plate1, gain, 10e-9), c.resistor(gain, grid2, 470e3), c.capacitor(gain, grid2, 220e-12);
  c.resistor(grid2, ground, 220e3), c.capacitor(grid2, plate2, 3e-12);
  c.supply(plate2, 100e3, 300);
  c.resistor(cathode2, ground, 1.8e3), c.capacitor(cathode2, ground, 1e-6);
  c.triode(plate2, grid2, cathode2);

  const auto treble = c.node(), slope = c.node(), bass = c.node(), middle = c.node();
  out = c.node();
  c.capacitor(plate2, treble, 250e-12), c.resistor(plate2, slope, 56e3);
  c.capacitor(slope, bass, 22e-9), c.capacitor(slope, middle, 22e-9);
  c.resistor(treble, out, 100e3), c.resistor(out, bass, 150e3);  // the treble control, at 6 of 10
  c.resistor(bass, middle, 300e3), c.resistor(middle, ground, 12e3), c.resistor(out, ground, 1e6);
  return c;
}

/// The amplifier: the circuit, solved at four times the sample rate, and a loudspeaker of four filters. An input of 1
/// is a volt.
class Amplifier {
 public:
  static constexpr double rate = 48000;
  static constexpr int oversampling = 4;

  Amplifier() : circuit_(amplifier_circuit(out_)) {
    for (std::size_t i = 0; i < kTaps; ++i) {  // a low pass at 20 kHz, a sinc in a Blackman window
      const double t = static_cast<double>(i) - (kTaps - 1) / 2.0,
                   p = 3.14159265358979323846 * 2 * static_cast<double>(i) / (kTaps - 1);
      const double x = 3.14159265358979323846 * t * 2 * 20000 / (rate * oversampling);
      taps_[i] = 2 * 20000 / (rate * oversampling) * (t == 0 ? 1 : std::sin(x) / x) *
                 (0.42 - 0.5 * std::cos(p) + 0.08 * std::cos(2 * p));
    }
    circuit_.prepare(rate * oversampling);
    rest_ = circuit_.voltage(out_);
  }

  /// Returns what the loudspeaker gives for a whole recording. Its delay is that of the loudspeaker alone.
  std::vector<float> play(const std::vector<float>& dry) {
    const std::vector<double> high = interpolated(dry);
    std::vector<double> out(high.size());
    for (std::size_t i = 0; i < high.size(); ++i) circuit_.step(high[i]), out[i] = circuit_.voltage(out_) - rest_;
    std::vector<float> wet(dry.size());
    const auto n = static_cast<std::ptrdiff_t>(out.size());
    for (std::size_t i = 0; i < dry.size(); ++i) {
      double y = 0;
      for (std::size_t k = 0; k < kTaps; ++k) {
        const std::ptrdiff_t at =
            static_cast<std::ptrdiff_t>(i * oversampling + kTaps / 2) - static_cast<std::ptrdiff_t>(k);
        if (at >= 0 && at < n) y += taps_[k] * out[static_cast<std::size_t>(at)];
      }
      for (Biquad& filter : speaker_) y = filter(y);
      wet[i] = static_cast<float>(y * 0.02);  // the loudest chords stay within 1
    }
    return wet;
  }

 private:
  static constexpr std::ptrdiff_t kTaps = 129;

  std::vector<double> interpolated(const std::vector<float>& x) const {
    std::vector<double> y(x.size() * oversampling);
    const auto n = static_cast<std::ptrdiff_t>(x.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      double sum = 0;
      const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(i) + kTaps / 2;
      for (std::ptrdiff_t k = last % oversampling; k < kTaps; k += oversampling) {
        const std::ptrdiff_t at = (last - k) / oversampling;
        if (at >= 0 && at < n) sum += taps_[static_cast<std::size_t>(k)] * x[static_cast<std::size_t>(at)];
      }
      y[i] = oversampling * sum;
    }
    return y;
  }

  std::array<double, kTaps> taps_{};
  Circuit::Node out_ = 0;
  Circuit circuit_;
  double rest_ = 0;
  std::array<Biquad, 4> speaker_{
      Biquad(Biquad::Kind::high_pass, 80, 0.9, rate), Biquad(Biquad::Kind::peak, 2500, 1, rate, 5),
      Biquad(Biquad::Kind::low_pass, 5000, 0.6, rate), Biquad(Biquad::Kind::low_pass, 5500, 1.1, rate)};
};

}  // namespace nets
