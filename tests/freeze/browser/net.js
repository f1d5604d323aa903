/** Runs the frozen net `net` in a browser, a worker, an AudioWorklet or node. The types are in net.d.ts. */

const NAME = "net";
const ALIGNMENT = 64; // of an instance, enough for every vector

/** The net's WebAssembly, and the memory that its instances share. */
class Machine {
  constructor(module) {
    const { exports } = new WebAssembly.Instance(module);
    this.memory = exports.memory;
    const named = (name) => exports[`${NAME}_${name}`];
    for (const name of ["init", "step", "steps", "reset", "save", "restore", "check"]) this[name] = named(name);
    for (const name of ["inputs", "outputs", "saved_bytes", "bytes"]) this[name] = named(name)();
    this.end = exports.__heap_base.value;
    this.freed = new Map(); // the size of a slot: addresses
  }

  /** Returns the address of `bytes` bytes. This may move the memory: arrays over it become empty. */
  allocate(bytes) {
    const again = this.freed.get(bytes)?.pop();
    if (again !== undefined) return again;
    const address = aligned(this.end);
    this.end = address + bytes;
    const missing = this.end - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / 65536));
    return address;
  }

  free(address, bytes) {
    if (!this.freed.has(bytes)) this.freed.set(bytes, []);
    this.freed.get(bytes).push(address);
  }
}

const aligned = (bytes) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

const compile = async (source) => {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  const response = await fetch(source);
  if (!response.ok) throw new Error(`${source}: ${response.status} ${response.statusText}`);
  return WebAssembly.compile(await response.arrayBuffer());
};

export class Net {
  #machine;
  #block;
  #address;
  #x_address;
  #y_address;
  #saved_address;
  #slot;
  #x; // arrays over the memory of this instance
  #y;

  /** Use `load`, `compiled` or `another`. */
  constructor(machine, block) {
    if (!(machine instanceof Machine)) throw new TypeError("Use Net.load, Net.compiled or another()");
    if (!Number.isInteger(block) || block < 1) throw new RangeError(`block is ${block}, must be at least 1`);
    this.#machine = machine;
    this.#block = block;
    const offsets = [machine.bytes, 4 * machine.inputs * block, 4 * machine.outputs * block, machine.saved_bytes];
    this.#slot = offsets.reduce((sum, bytes) => sum + aligned(bytes), 0);
    this.#address = machine.allocate(this.#slot);
    this.#x_address = this.#address + aligned(offsets[0]);
    this.#y_address = this.#x_address + aligned(offsets[1]);
    this.#saved_address = this.#y_address + aligned(offsets[2]);
    this.#view();
    machine.init(this.#address);
  }

  static async load(source, { block = 128 } = {}) {
    return new Net(new Machine(await compile(source)), block);
  }

  static compiled(source, { block = 128 } = {}) {
    const module = source instanceof WebAssembly.Module ? source : new WebAssembly.Module(source);
    return new Net(new Machine(module), block);
  }

  another({ block = this.#block } = {}) {
    return new Net(this.#machine, block);
  }

  get inputs() {
    return this.#machine.inputs;
  }

  get outputs() {
    return this.#machine.outputs;
  }

  get savedBytes() {
    return this.#machine.saved_bytes;
  }

  step(x, y) {
    const { inputs, outputs } = this.#machine;
    if (x.length < inputs || y.length < outputs) this.#refuse(1, x, y);
    if (this.#x.length === 0) this.#view();
    for (let i = 0; i < inputs; ++i) this.#x[i] = x[i];
    const error = this.#machine.step(this.#address, this.#x_address, this.#y_address);
    if (error) this.#fail(error);
    for (let i = 0; i < outputs; ++i) y[i] = this.#y[i];
  }

  steps(n, x, y) {
    const { inputs, outputs } = this.#machine;
    if (x.length < n * inputs || y.length < n * outputs) this.#refuse(n, x, y);
    if (this.#x.length === 0) this.#view();
    for (let done = 0; done < n; done += this.#block) {
      const count = Math.min(this.#block, n - done);
      for (let i = 0, from = done * inputs; i < count * inputs; ++i) this.#x[i] = x[from + i];
      const error = this.#machine.steps(this.#address, count, this.#x_address, this.#y_address);
      if (error) this.#fail(error);
      for (let i = 0, to = done * outputs; i < count * outputs; ++i) y[to + i] = this.#y[i];
    }
  }

  reset() {
    this.#machine.reset(this.#address);
  }

  save() {
    this.#machine.save(this.#address, this.#saved_address);
    return new Uint8Array(this.#machine.memory.buffer, this.#saved_address, this.savedBytes).slice();
  }

  restore(bytes) {
    const expected = this.savedBytes;
    if (bytes.length !== expected) throw new RangeError(`${bytes.length} saved bytes, must be ${expected}`);
    new Uint8Array(this.#machine.memory.buffer, this.#saved_address, this.savedBytes).set(bytes);
    const error = this.#machine.restore(this.#address, this.#saved_address);
    if (error) this.#fail(error);
  }

  check() {
    return this.#machine.check(this.#address);
  }

  free() {
    this.#machine.free(this.#address, this.#slot);
    this.#machine = undefined;
  }

  #view() {
    const { memory, inputs, outputs } = this.#machine;
    this.#x = new Float32Array(memory.buffer, this.#x_address, this.#block * inputs);
    this.#y = new Float32Array(memory.buffer, this.#y_address, this.#block * outputs);
  }

  #refuse(n, x, y) {
    const { inputs, outputs } = this.#machine;
    const needed = `${n * inputs} inputs and ${n * outputs} outputs`;
    throw new RangeError(`${n} steps need ${needed}; the arrays have ${x.length} and ${y.length}`);
  }

  #fail(error) {
    throw new Error(`${NAME}: error ${error}`);
  }
}
