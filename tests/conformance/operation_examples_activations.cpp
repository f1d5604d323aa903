// Examples of activation functions and of their gradients, which only `grad` calls.
#include "conformance/operation_examples.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/activations.h"

namespace conformance {
namespace {

using namespace ferrite;

const OperationExample kActivations[] = {
    {"sigmoid", "torch.sigmoid", FERRITE_EXAMPLE(sigmoid(Tensor::from({0.f, 2.f})))},
    {"relu", "torch.relu", FERRITE_EXAMPLE(relu(Tensor::from({-1.f, 2.f})))},
    {"gelu", "torch.nn.functional.gelu", FERRITE_EXAMPLE(gelu(Tensor::from({-1.f, 1.f})))},
    {"gelu_tanh", "torch.nn.functional.gelu with approximate=\"tanh\"",
     FERRITE_EXAMPLE(gelu(Tensor::from({-1.f, 1.f}), GeluForm::tanh))},
    {"softplus", "torch.nn.functional.softplus", FERRITE_EXAMPLE(softplus(Tensor::from({0.f, 100.f})))},
    {"softsign", "torch.nn.functional.softsign", FERRITE_EXAMPLE(softsign(Tensor::from({-1.f, 3.f})))},
    {"silu", "torch.nn.functional.silu", FERRITE_EXAMPLE(silu(Tensor::from({-1.f, 2.f})))},
    {"log_sigmoid", "torch.nn.functional.logsigmoid", FERRITE_EXAMPLE(log_sigmoid(Tensor::from({0.f, -100.f})))},
    {"leaky_relu", "torch.nn.functional.leaky_relu", FERRITE_EXAMPLE(leaky_relu(Tensor::from({-1.f, 2.f}), 0.2))},
    {"elu", "torch.nn.functional.elu", FERRITE_EXAMPLE(elu(Tensor::from({-1.f, 2.f})))},
    {"celu", "torch.nn.functional.celu", FERRITE_EXAMPLE(celu(Tensor::from({-1.f, 2.f}), 2))},
    {"selu", "torch.nn.functional.selu", FERRITE_EXAMPLE(selu(Tensor::from({-1.f, 2.f})))},
    {"hardtanh", "torch.nn.functional.hardtanh", FERRITE_EXAMPLE(hardtanh(Tensor::from({-3.f, 0.5f})))},
    {"hardsigmoid", "torch.nn.functional.hardsigmoid", FERRITE_EXAMPLE(hardsigmoid(Tensor::from({-4.f, 0.f, 1.5f})))},
    {"hardswish", "torch.nn.functional.hardswish", FERRITE_EXAMPLE(hardswish(Tensor::from({-4.f, 1.f, 4.f})))},
    {"mish", "torch.nn.functional.mish", FERRITE_EXAMPLE(mish(Tensor::from({-1.f, 2.f})))},
    {"softshrink", "torch.nn.functional.softshrink", FERRITE_EXAMPLE(softshrink(Tensor::from({-2.f, 0.2f, 1.f})))},
    {"hardshrink", "torch.nn.functional.hardshrink", FERRITE_EXAMPLE(hardshrink(Tensor::from({-2.f, 0.2f, 1.f})))},
    {"threshold", "torch.nn.functional.threshold", FERRITE_EXAMPLE(threshold(Tensor::from({0.5f, 2.f}), 1, -5))},
    {"tanhshrink", "torch.nn.functional.tanhshrink", FERRITE_EXAMPLE(tanhshrink(Tensor::from({0.f, 1.f})))},
    {"gated", "", FERRITE_EXAMPLE(glu(Tensor::from({3.f, 5.f, 0.f, 1.f})))},

    {"tanh_grad", "", FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(tanh(x)); })(Tensor::from({0.f, 1.f})))},
    {"sigmoid_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(sigmoid(x)); })(Tensor::from({0.f, 1.f})))},
    {"relu_grad", "", FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(relu(x)); })(Tensor::from({-1.f, 2.f})))},
    {"silu_grad", "", FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(silu(x)); })(Tensor::from({0.f, 1.f})))},
    {"log_sigmoid_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(log_sigmoid(x)); })(Tensor::from({0.f, 1.f})))},
    {"softplus_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(softplus(x)); })(Tensor::from({0.f, 1.f})))},
    {"softsign_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(softsign(x)); })(Tensor::from({0.f, 1.f})))},
    {"gelu_grad", "", FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(gelu(x)); })(Tensor::from({0.f, 1.f})))},
    {"gelu_tanh_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(gelu(x, GeluForm::tanh)); })(Tensor::from({0.f, 1.f})))},
    {"leaky_relu_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(leaky_relu(x, 0.2)); })(Tensor::from({-1.f, 2.f})))},
    {"elu_grad", "", FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(elu(x)); })(Tensor::from({-1.f, 2.f})))},
    {"celu_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(celu(x, 2)); })(Tensor::from({-1.f, 2.f})))},
    {"selu_grad", "", FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(selu(x)); })(Tensor::from({-1.f, 2.f})))},
    {"hardswish_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(hardswish(x)); })(Tensor::from({0.f, 4.f})))},
    {"mish_grad", "", FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(mish(x)); })(Tensor::from({0.f, 1.f})))},
    {"tanhshrink_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(tanhshrink(x)); })(Tensor::from({0.f, 1.f})))},
    {"pass_above", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(threshold(x, 1, -5)); })(Tensor::from({0.f, 2.f})))},
    {"pass_below", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(hardtanh(x)); })(Tensor::from({0.f, 2.f})))},
    {"shrink_grad", "",
     FERRITE_EXAMPLE(grad([](const Tensor& x) { return sum(softshrink(x)); })(Tensor::from({0.2f, 2.f})))},
};

}  // namespace

std::span<const OperationExample> activation_examples() { return kActivations; }

}  // namespace conformance
