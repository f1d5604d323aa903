/** Tries a module under node: net_test.mjs BUILT NAME. With --time it prints the time of a step instead. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const built = path.resolve(process.argv[2]);
const name = process.argv[3];
const { Net } = await import(pathToFileURL(path.join(built, `${name}.js`)));
const wasm = readFileSync(path.join(built, `${name}.wasm`));
const bits = (values) => Array.from(new Uint32Array(Float32Array.from(values).buffer));

/** The inputs of main.c: multiples of 2^-23 between -1 and 1. */
const inputs = (count) => {
  let state = 1;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return ((state >>> 8) - 0x800000) / 0x800000;
  });
};

/** Returns the nanoseconds of a step, the least of 9 measurements. */
const time = (work, steps) => {
  let least = Infinity;
  for (let i = 0; i < 10; ++i) {
    const began = process.hrtime.bigint();
    work();
    if (i > 0) least = Math.min(least, Number(process.hrtime.bigint() - began) / steps);
  }
  return Math.round(least);
};

if (process.argv.includes("--time")) {
  const net = await Net.load(wasm);
  const blocks = 400;
  const x = inputs(128 * net.inputs);
  const y = new Float32Array(128 * net.outputs);
  const one = x.slice(0, net.inputs);
  const figures = {
    ns_per_step_in_blocks: time(() => {
      for (let i = 0; i < blocks; ++i) net.steps(128, x, y);
    }, 128 * blocks),
    ns_per_single_step: time(() => {
      for (let i = 0; i < 128 * blocks; ++i) net.step(one, y);
    }, 128 * blocks),
  };
  console.log(JSON.stringify(figures));
} else if (process.argv.includes("--outputs")) {
  const net = await Net.load(wasm);
  const steps = 32;
  const y = new Float32Array(steps * net.outputs);
  net.steps(steps, inputs(steps * net.inputs), y);
  console.log(JSON.stringify(bits(y).map((value) => value.toString(16).padStart(8, "0"))));
} else {
  const steps = 300;
  const net = await Net.load(wasm);
  const x = inputs(steps * net.inputs);
  const row = (k) => x.subarray(k * net.inputs, (k + 1) * net.inputs);
  const expected = new Float32Array(steps * net.outputs);
  for (let k = 0; k < steps; ++k) net.step(row(k), expected.subarray(k * net.outputs));

  test("the compiler has kept the bits", () => assert.equal(net.check(), 0));

  test("steps have the bits of single steps, in blocks of any size", () => {
    for (const block of [1, 7, 128, 1000]) {
      const other = net.another({ block });
      const y = new Float32Array(steps * net.outputs);
      other.steps(steps, x, y);
      assert.deepEqual(bits(y), bits(expected));
      other.free();
    }
  });

  test("a reset begins a new sequence", () => {
    const y = new Float32Array(net.outputs);
    net.step(row(1), y);
    net.reset();
    net.step(row(0), y);
    assert.deepEqual(bits(y), bits(expected.subarray(0, net.outputs)));
  });

  test("a saved sequence is resumed by another instance", () => {
    const first = net.another();
    const second = net.another();
    const y = new Float32Array(steps * net.outputs);
    first.steps(100, x, y);
    const saved = first.save();
    assert.equal(saved.length, net.savedBytes);
    second.restore(saved);
    second.steps(steps - 100, x.subarray(100 * net.inputs), y.subarray(100 * net.outputs));
    assert.deepEqual(bits(y), bits(expected));
    assert.throws(() => second.restore(saved.subarray(1)), RangeError);
  });

  test("instances that move the memory leave the others as they are", () => {
    const first = net.another();
    const y = new Float32Array(steps * net.outputs);
    first.steps(150, x, y);
    const others = Array.from({ length: 200 }, () => net.another());
    for (const other of others) other.step(row(0), new Float32Array(net.outputs));
    first.steps(steps - 150, x.subarray(150 * net.inputs), y.subarray(150 * net.outputs));
    assert.deepEqual(bits(y), bits(expected));
  });

  test("short arrays are refused", () => {
    assert.throws(() => net.step(new Float32Array(net.inputs), []), RangeError);
    assert.throws(() => net.steps(2, new Float32Array(net.inputs), new Float32Array(2 * net.outputs)), RangeError);
    assert.throws(() => net.another({ block: 0 }), RangeError);
  });

  test("a compiled module needs no waiting", () => {
    const other = Net.compiled(new WebAssembly.Module(wasm), { block: 16 });
    assert.equal(other.check(), 0);
    assert.throws(() => new Net({}, 1), TypeError);
  });
}
