#pragma once
/// The base of layers that keep their options as a struct.
#include <concepts>
#include <memory>
#include <string>
#include <string_view>

#include "ferrite/nn/module.h"
#include "ferrite/tensor/attrs.h"

namespace ferrite::nn {

/// An empty options struct, for layers of LayerOf that have no options.
struct NoOptions {
  static constexpr auto fields = attr_list();
};

namespace detail {
/// Returns "linear(in_features=3, out_features=4)": `given`, followed by the options that differ from their defaults.
std::string summary_of(const std::string& kind, std::string given, const Attrs& options, const Attrs& defaults);
/// Returns the dtype of a module's first parameter, else of its first float buffer; f32 without either.
Dtype dtype_of(const Module& module);
}  // namespace detail

/// The base of a layer that keeps its options as a struct. It derives `kind`, `clone` and `summary` from them:
///
///   struct EchoOptions {
///     std::int64_t features = 1;
///     double decay = 0.5;
///     static constexpr auto fields =
///         attr_list(attr("features", &EchoOptions::features), attr("decay", &EchoOptions::decay));
///   };
///   struct Echo final : nn::LayerOf<Echo, EchoOptions> {
///     static constexpr auto name = "echo";  // its kind
///     Parameter decay;
///     explicit Echo(const EchoOptions& o, const nn::Init& init = {}) : LayerOf(o, init) {
///       decay = parameter("decay", {o.features}, nn::init::constant(o.decay), init);
///     }
///     Tensor forward(const Tensor& x, const nn::Context&) const override { ... }
///   };
///
/// `clone` constructs Self(options, init), Self(options) or Self(), for a recurrent layer Self(input_size, hidden_size,
/// options, init), and copies all values; a layer with another constructor declares `another`. `fields`
/// (tensor/attrs.h: AttrStruct) is only for `summary` and may be left out. Without a `name` the kind is that of Base.
template <class Self, class Options = NoOptions, std::derived_from<Layer> Base = Layer>
class LayerOf : public Base {
 public:
  const Options& options() const& { return options_; }
  Options options() const&& { return options_; }

  std::string kind() const override;
  std::string summary() const override;
  std::unique_ptr<Layer> clone() const override;

  /// Returns a layer with the same options and the dtype of `init`, whose values `clone` fills.
  std::unique_ptr<Self> another(const Init& init) const;

 protected:
  /// Stores the options and passes `more`, such as the Init of a plain layer, to Base.
  template <class... More>
  explicit LayerOf(Options options, More&&... more) : Base(std::forward<More>(more)...), options_(std::move(options)) {}
  LayerOf() requires(std::default_initializable<Options>) = default;

 private:
  Options options_{};
};

// These are not in the class so that a program that includes the library's layers, which are declared `extern
// template`, does not compile them.

template <class Self, class Options, std::derived_from<Layer> Base>
std::string LayerOf<Self, Options, Base>::kind() const {
  if constexpr (requires { std::string_view(Self::name); }) {
    return std::string(Self::name);
  } else if constexpr (!std::same_as<Base, Layer>) {
    return Base::kind();
  } else {
    return "layer";
  }
}

template <class Self, class Options, std::derived_from<Layer> Base>
std::string LayerOf<Self, Options, Base>::summary() const {
  if constexpr (AttrStruct<Options> && std::default_initializable<Options>) {
    std::string sizes;
    if constexpr (requires { this->hidden_size(); })
      sizes =
          "input_size=" + std::to_string(this->input_size()) + ", hidden_size=" + std::to_string(this->hidden_size());
    return detail::summary_of(this->kind(), std::move(sizes), Attrs(options_), Attrs(Options{}));
  } else {
    return this->kind();
  }
}

template <class Self, class Options, std::derived_from<Layer> Base>
std::unique_ptr<Layer> LayerOf<Self, Options, Base>::clone() const {
  std::unique_ptr<Self> copy =
      static_cast<const Self&>(*this).another({.seed = {}, .prefix = {}, .dtype = detail::dtype_of(*this)});
  copy_values(*this, *copy);
  copy->take_after(*this);
  return copy;
}

template <class Self, class Options, std::derived_from<Layer> Base>
std::unique_ptr<Self> LayerOf<Self, Options, Base>::another(const Init& init) const {
  if constexpr (std::constructible_from<Self, const Options&, const Init&>) {
    return std::make_unique<Self>(options_, init);
  } else if constexpr (std::constructible_from<Self, std::int64_t, std::int64_t, const Options&, const Init&>) {
    return std::make_unique<Self>(this->input_size(), this->hidden_size(), options_, init);
  } else if constexpr (std::constructible_from<Self, const Options&>) {
    return std::make_unique<Self>(options_);
  } else {
    return std::make_unique<Self>();
  }
}

}  // namespace ferrite::nn
