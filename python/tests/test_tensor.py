"""Tensors: construction, NumPy and DLPack, indexing, operators, dtypes."""

import copy
import gc
import os
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ferrite

DTYPES = ["float32", "float64", "int32", "int64", "bool", "float16", "int8"]


def arrays(dtypes=DTYPES, min_dims=0, max_dims=4, max_side=5):
    return st.sampled_from(dtypes).flatmap(
        lambda t: hnp.arrays(
            t,
            hnp.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=0, max_side=max_side),
            elements=None if t in ("bool", "int8", "int32", "int64") else st.integers(-100, 100),
        )
    )


@st.composite
def strided(draw):
    """Arrays with steps, reversed and transposed axes."""
    a = draw(arrays(min_dims=1))
    a = a.transpose(draw(st.permutations(range(a.ndim))))
    return a[tuple(slice(None, None, draw(st.sampled_from([1, 2, -1, -3]))) for _ in range(a.ndim))]


@given(arrays())
def test_round_trip(a):
    t = ferrite.tensor(a)
    assert t.shape == a.shape and t.dtype == a.dtype and t.ndim == a.ndim and t.size == a.size
    back = np.asarray(t)
    assert back.dtype == a.dtype and np.array_equal(back, a)


@given(strided())
def test_strided_arrays(a):
    assert np.array_equal(np.asarray(ferrite.tensor(a)), a)
    assert np.array_equal(np.asarray(ferrite.asarray(a)), a)


@given(arrays())
def test_read_only_arrays(a):
    a.flags.writeable = False
    assert np.array_equal(np.asarray(ferrite.tensor(a)), a)
    assert np.array_equal(np.asarray(ferrite.asarray(a)), a)


def test_arrays_are_shared_only_where_memory_behind_them_is_mapped(guarded):
    inside = np.frombuffer(bytearray(4096 * 3), "float32")
    start = (-inside.ctypes.data % 4096) // 4
    middle = inside[start : start + 100]
    assert ferrite.shares_memory(ferrite.asarray(middle), middle)
    last = guarded(np.arange(100, dtype="float32"))
    t = ferrite.asarray(last)
    assert not ferrite.shares_memory(t, last)
    assert float(t.sum()) == 4950 and np.array_equal(np.asarray(ferrite.tanh(t)), np.asarray(ferrite.tanh(last.copy())))


@pytest.mark.parametrize("count", [1, 7, 16, 17, 100, 1000])
def test_operations_do_not_read_behind_a_protected_page(guarded, count):
    a = guarded(np.linspace(-1, 1, count, dtype="float32"))
    for t in (ferrite.asarray(a), ferrite.tensor(a)):
        assert np.allclose(np.asarray(ferrite.exp(t) + t * t), np.exp(a) + a * a, rtol=1e-6)
        assert np.allclose(float(t @ t), float(a @ a), rtol=1e-5)
    assert np.allclose(float(ferrite.sum(a)), a.sum(), atol=1e-5)


@pytest.mark.parametrize("rows, shape, turned", [(8, (8, 8), False), (2, (250, 127), True), (64, (250, 127), False)])
def test_an_array_that_is_written_to_is_seen_by_its_tensor(rows, shape, turned):
    count = shape[0] * shape[1]
    whole = np.frombuffer(bytearray(4 * count + 4096 * 3), "float32")
    start = (-whole.ctypes.data % 4096) // 4
    weights = whole[start : start + count].reshape(shape)
    t, n = ferrite.asarray(weights), shape[turned]
    x = ferrite.ones([rows, n])
    assert ferrite.shares_memory(t, weights)
    for k in range(40):  # products that repeat keep packed copies of constants, but not of these
        weights[:] = k
        assert np.all(np.asarray(x @ (t.T if turned else t)) == n * k)


def test_arrays_live_as_long_as_their_tensors():
    whole = np.frombuffer(bytearray(4096 * 3), "float32")
    a = whole[(-whole.ctypes.data % 4096) // 4 :][:16]
    seen = weakref.ref(a)
    t = ferrite.asarray(a)
    del a
    gc.collect()
    assert seen() is not None
    view = t[3:]
    del t
    gc.collect()
    assert seen() is not None
    del view
    gc.collect()
    assert seen() is None


def test_a_tensor_lives_as_long_as_its_arrays():
    t = ferrite.arange(5.0)
    a = t.numpy()
    del t
    gc.collect()
    assert a.tolist() == [0, 1, 2, 3, 4] and not a.flags.writeable
    with pytest.raises(ValueError):
        a[0] = 1


@pytest.mark.parametrize("dtype", ["complex64", "uint8", "uint16", "int16", "uint64", "complex128"])
def test_other_dtypes_are_refused_by_name(dtype):
    with pytest.raises(ferrite.DtypeError, match=dtype):
        ferrite.tensor(np.zeros(2, dtype))
    with pytest.raises(TypeError, match=dtype):
        ferrite.exp(np.zeros(2, dtype))


@pytest.mark.parametrize("what", ["text", None, object(), {}, len])
def test_what_is_not_an_array_is_refused(what):
    with pytest.raises((TypeError, ValueError)):
        ferrite.exp(what)


def test_lists_become_tensors():
    assert ferrite.tensor([[1, 2], [3, 4]]).dtype == ferrite.i64
    assert ferrite.tensor([1, 2.5]).dtype == ferrite.f32
    assert ferrite.tensor([True, False]).dtype == ferrite.bool_
    assert ferrite.tensor([]).shape == (0,)
    assert ferrite.tensor([ferrite.ones([2]), ferrite.zeros([2])]).shape == (2, 2)
    assert ferrite.tensor([1, 2], dtype="float64").dtype == np.float64
    with pytest.raises(ValueError):
        ferrite.tensor([[1, 2], [3]])
    with pytest.raises(ValueError):
        ferrite.tensor([1, "a"])


@given(arrays(["float32", "int64"], min_dims=1), st.data())
def test_basic_indexing_is_numpys(a, data):
    key = data.draw(hnp.basic_indices(a.shape, allow_newaxis=True, allow_ellipsis=True, max_dims=6))
    assert np.array_equal(np.asarray(ferrite.tensor(a)[key]), a[key])


@given(arrays(["float32", "int64"], min_dims=1, max_dims=3), st.data())
def test_lists_and_masks_index(a, data):
    axis = data.draw(st.integers(0, a.ndim - 1))
    n = a.shape[axis]
    before = (slice(None),) * axis
    if n:
        index = np.array(data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=6)))
        assert np.array_equal(np.asarray(ferrite.tensor(a)[before + (index,)]), a[before + (index,)])
        assert np.array_equal(np.asarray(ferrite.tensor(a)[before + (index.tolist(),)]), a[before + (index,)])
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    assert np.array_equal(np.asarray(ferrite.tensor(a)[before + (ferrite.tensor(mask),)]), a[before + (mask,)])


def test_indices_that_do_not_exist():
    t = ferrite.ones([2, 3])
    for key in [2, -3, (0, 3), (0, 0, 0), [2]]:
        with pytest.raises((IndexError, ferrite.ShapeError)):
            t[key]
    with pytest.raises(ValueError):
        t[::0]
    with pytest.raises(TypeError):
        t["a"]
    with pytest.raises(TypeError):
        t[0] = 1  # tensors do not change


OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


@pytest.mark.parametrize("name", OPERATORS)
@given(data=st.data())
def test_operators_broadcast_as_numpys(name, data):
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4))
    a, b = (data.draw(hnp.arrays("float32", s, elements=st.integers(1, 9))) for s in shapes.input_shapes)
    f, expected = OPERATORS[name], OPERATORS[name](a, b)
    for x, y in [(ferrite.tensor(a), ferrite.tensor(b)), (ferrite.tensor(a), b), (a, ferrite.tensor(b))]:
        got = f(x, y)
        assert isinstance(got, ferrite.Tensor) and got.shape == expected.shape
        assert np.array_equal(np.asarray(got), expected)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_take_numbers_on_either_side(name):
    a, f = np.array([[1.0, 2.5], [4.0, 8.0]], "float32"), OPERATORS[name]
    for number in [2, 2.5, True, np.float32(4), np.float64(2.5), np.int64(8)]:
        n = np.float32(number)
        assert np.array_equal(np.asarray(f(ferrite.tensor(a), number)), f(a, n))
        assert np.array_equal(np.asarray(f(number, ferrite.tensor(a))), f(n, a))
        assert f(ferrite.tensor(a), number).dtype == (ferrite.bool_ if name[0] in "<>=!" else ferrite.f32)


def test_other_operators():
    a = ferrite.tensor([[1.0, 2], [3, 4]])
    assert np.array_equal(np.asarray(a @ a), [[7, 10], [15, 22]])
    assert np.array_equal(np.asarray(np.ones((2, 2), "float32") @ a), [[4, 6], [4, 6]])
    assert np.array_equal(np.asarray(-a), -np.asarray(a)) and np.array_equal(np.asarray(abs(-a)), np.asarray(a))
    assert np.array_equal(np.asarray(a**2), [[1, 4], [9, 16]])
    assert np.array_equal(np.asarray(2**a), [[2, 4], [8, 16]])
    p, q = ferrite.tensor([True, True, False]), ferrite.tensor([True, False, False])
    assert (p & q).tolist() == [True, False, False] and (p | q).tolist() == [True, True, False]
    assert (p ^ q).tolist() == [False, True, False] and (~p).tolist() == [False, False, True]


def test_numbers_of_one_element():
    t = ferrite.tensor(2.5)
    assert float(t) == 2.5 and int(t) == 2 and t.item() == 2.5 and bool(t) and complex(t) == 2.5
    assert [10, 20, 30][ferrite.tensor(1)] == 20
    with pytest.raises(TypeError):
        [1][t]
    for f in (float, int, ferrite.Tensor.item):
        with pytest.raises(ValueError):
            f(ferrite.ones([2]))
    with pytest.raises(ValueError, match="any"):
        bool(ferrite.ones([2]))
    with pytest.raises(TypeError):
        len(t)
    with pytest.raises(TypeError):
        iter(t)
    assert [x.item() for x in ferrite.arange(3)] == [0, 1, 2] and len(ferrite.ones([4, 2])) == 4


def test_integers_keep_their_bits():
    big = 2**62 + 3
    assert ferrite.tensor([big]).item() == big and (ferrite.tensor([big]) + 1).item() == big + 1
    with pytest.raises(ferrite.DtypeError):
        ferrite.tensor([1]) + 0.5
    with pytest.raises(ferrite.DtypeError):
        ferrite.tensor([1.0]) + ferrite.tensor([1.0], "float64")


@given(arrays())
def test_pickle_and_copies(a):
    t = ferrite.tensor(a)
    for u in (pickle.loads(pickle.dumps(t)), copy.copy(t), copy.deepcopy(t)):
        assert u.dtype == t.dtype and np.array_equal(np.asarray(u), a)


def test_bfloat16():
    t = ferrite.tensor([1.0, 2.5]).astype(ferrite.bf16)
    with pytest.raises(ferrite.DtypeError, match="bfloat16"):
        t.numpy()
    assert pickle.loads(pickle.dumps(t)).dtype == ferrite.bf16 and t.astype("f32").tolist() == [1, 2.5]


def test_dtypes():
    assert ferrite.f32 == np.float32 == ferrite.f32 and ferrite.f32 == "float32" and ferrite.f32 != "int32"
    assert repr(ferrite.f64) == "ferrite.f64" and ferrite.bool_.name == "bool" and ferrite.i64.itemsize == 8
    assert {ferrite.f32: 1}[ferrite.f32] == 1 and pickle.loads(pickle.dumps(ferrite.i8)) is ferrite.i8
    for named in ["f64", "float64", np.float64, np.dtype("float64"), ferrite.f64]:
        assert ferrite.zeros([1], named).dtype == ferrite.f64
    with pytest.raises(ferrite.DtypeError, match="float8"):
        ferrite.zeros([1], "float8")


def test_repr():
    assert repr(ferrite.tensor([[1.0, 2], [3, 4]])) == "tensor([[1., 2.],\n        [3., 4.]])"
    assert repr(ferrite.tensor([1])).endswith("dtype=i64)")


def test_dlpack():
    torch = pytest.importorskip("torch")
    a = torch.arange(12, dtype=torch.float32).reshape(3, 4).t()
    assert np.array_equal(np.asarray(ferrite.tensor(a)), a.numpy())
    t = ferrite.arange(6.0).reshape([2, 3])
    b = torch.from_dlpack(t)
    b += 1  # a copy: the tensor does not change
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]] and b.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert np.array_equal(np.from_dlpack(t), np.asarray(t))
    assert ferrite.tensor(torch.ones(2, dtype=torch.bfloat16)).dtype == ferrite.bf16
    assert torch.from_dlpack(ferrite.ones([2]).astype("bf16")).dtype == torch.bfloat16
    with pytest.raises((ferrite.DtypeError, TypeError)):
        ferrite.tensor(torch.ones(2, dtype=torch.complex64))


def test_errors_are_pythons_too():
    for error, python in [
        (ferrite.ShapeError, ValueError),
        (ferrite.DtypeError, TypeError),
        (ferrite.ValueError, ValueError),
        (ferrite.IoError, OSError),
        (ferrite.MemoryError, MemoryError),
        (ferrite.TapeError, RuntimeError),
        (ferrite.TraceError, RuntimeError),
    ]:
        assert issubclass(error, python) and issubclass(error, ferrite.Error)
    with pytest.raises(ValueError, match="too large"):
        ferrite.zeros([2**40, 100])
    with pytest.raises(MemoryError):
        ferrite.zeros([2**43])
    with pytest.raises(ferrite.ShapeError, match=r"matmul.*\[2, 3\] \. \[2, 3\]"):
        ferrite.ones([2, 3]) @ ferrite.ones([2, 3])


def test_hashes_are_identities():
    a, b = ferrite.ones([2]), ferrite.ones([2])
    assert hash(a) != hash(b) and len({a, b}) == 2


def test_many_calls_leave_no_memory_and_no_references():
    resource = pytest.importorskip("resource")
    a, x = np.ones((4, 4), "float32"), ferrite.ones([4, 4])
    index = (slice(None), [0, 2])

    def work(n):
        for _ in range(n):
            y = (x @ a + 1) * 2
            y[index].sum().item()
            try:
                x @ ferrite.ones([3])
            except ferrite.ShapeError:
                pass

    work(2000)
    before, counts = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, (sys.getrefcount(a), sys.getrefcount(x))
    work(1_000_000 if os.environ.get("FERRITE_LONG") else 60_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096
    assert (sys.getrefcount(a), sys.getrefcount(x)) == counts


def test_threads_compute_at_once():
    x = ferrite.normal([64, 64], seed=1)
    expected = np.asarray(ferrite.tanh(x @ x))
    wrong = []

    def work():
        for _ in range(300):
            if not np.array_equal(np.asarray(ferrite.tanh(x @ x)), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_denormals_survive_another_packages_mode():
    ctypes = pytest.importorskip("ctypes")
    torch = pytest.importorskip("torch")
    del ctypes
    tiny = np.array([1e-40], "float32")
    if not torch.set_flush_denormal(True):
        pytest.skip("the processor has no such mode")
    try:
        assert float((ferrite.tensor(tiny) * 2).numpy()[0].view("int32")) == float((tiny.view("int32") * 2)[0])
        assert float(torch.tensor([1e-40]) * 2) == 0  # the mode of the caller is as it was
    finally:
        torch.set_flush_denormal(False)
