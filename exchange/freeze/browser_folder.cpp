/// A frozen net as a module for browsers.
#include <array>
#include <string_view>
#include <utility>

#include "ferrite/exchange/freeze/folder_text.h"
#include "ferrite/exchange/freeze_folders.h"
#include "ferrite/tensor/error.h"

namespace ferrite::exchange {
namespace {

/// README.md of the folder, which shows how to build and use the module.
constexpr std::string_view kReadme =
    R"text(# `@name` in a browser

Clang and its linker (on Debian `clang` and `lld`) make `@name.wasm`, without Emscripten:

    clang --target=wasm32 -O3 -msimd128 -mbulk-memory -fvisibility=default -nostdlib @name.c @name_wasm.c \
      -o @name.wasm -Wl,--no-entry,--export-dynamic,--export=__heap_base,-z,stack-size=65536,--strip-all

Leave out `-msimd128` for browsers of before 2023. Then serve the folder, since pages from `file:` can load neither
modules nor WebAssembly, and open <http://localhost:8000>, where an oscillator plays through the net:

    python3 -m http.server

A page needs `@name.wasm` and `@name.js`, and `worklet.js` if it has an AudioWorklet:

```js
import { Net } from "./@name.js";

const net = await Net.load("@name.wasm");
const x = new Float32Array(net.inputs);
const y = new Float32Array(net.outputs);
net.step(x, y); // reads x, writes y
```

`@name.d.ts` describes the other functions.
)text";

/// The sizes that JavaScript cannot read from the header.
constexpr std::string_view kSizes =
    R"text(/* What a program in another language has to know of a net and cannot read from its header. */
#include "@name.h"

int32_t @name_inputs(void);
int32_t @name_outputs(void);
int32_t @name_saved_bytes(void);
int32_t @name_bytes(void);

int32_t @name_inputs(void) { return @NAME_INPUTS; }
int32_t @name_outputs(void) { return @NAME_OUTPUTS; }
int32_t @name_saved_bytes(void) { return @NAME_SAVED_BYTES; }
int32_t @name_bytes(void) { return (int32_t)sizeof(@name); }
)text";

/// The ES module that loads and runs the net.
constexpr std::string_view kModule =
    R"text(/** Runs the net `@name` in a browser, a worker, an AudioWorklet or node. The types are in @name.d.ts. */

const NAME = "@name";
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

class Net {
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

export { Net };
)text";

/// The TypeScript declarations of the ES module.
constexpr std::string_view kTypes =
    R"text(/** A URL of the .wasm file, its bytes, or the compiled module. */
export type NetSource = string | URL | BufferSource | WebAssembly.Module;

export interface NetOptions {
  /** The steps that one call of WebAssembly computes at most, default 128. Longer sequences take several calls. */
  block?: number;
}

/** One instance of the frozen net `@name`, which keeps its state between steps. A step allocates nothing. */
export class Net {
  private constructor();

  /** Compiles the net and returns an instance at the beginning of a sequence. */
  static load(source: NetSource, options?: NetOptions): Promise<Net>;
  /** Does the same without waiting, for an AudioWorklet, which has neither `fetch` nor a reason to wait. */
  static compiled(source: BufferSource | WebAssembly.Module, options?: NetOptions): Net;
  /** Returns a further instance, at the beginning of a sequence, in the same memory. */
  another(options?: NetOptions): Net;

  /** The numbers that a step reads and writes, and the bytes of `save`. */
  readonly inputs: number;
  readonly outputs: number;
  readonly savedBytes: number;

  /** Reads `inputs` numbers from x and writes `outputs` numbers to y. */
  step(x: ArrayLike<number>, y: Float32Array | number[]): void;
  /** Computes n steps: x holds n rows of inputs, y receives n rows of outputs. The bits are those of n single steps. */
  steps(n: number, x: ArrayLike<number>, y: Float32Array | number[]): void;
  /** Starts a new sequence. */
  reset(): void;
  /** Returns the state of the sequence, which `restore` resumes, also in another instance. */
  save(): Uint8Array;
  restore(bytes: Uint8Array): void;
  /** Compares eight stored steps bit for bit and starts a new sequence. 0 if all are equal. */
  check(): number;
  /** Gives the memory back to the next instance of the same block. The instance can no longer be used. */
  free(): void;
}
)text";

/// The AudioWorklet processor that runs the net on audio.
constexpr std::string_view kWorklet =
    R"text(/** The net `@name` as an audio processor: input channels are its inputs, output channels its outputs. */
import { Net } from "./@name.js";

class NetProcessor extends AudioWorkletProcessor {
  constructor({ processorOptions }) {
    super();
    // The bytes are compiled here: not every browser passes a compiled module to an audio thread.
    this.net = Net.compiled(processorOptions.wasm);
    this.x = new Float32Array(128 * this.net.inputs);
    this.y = new Float32Array(128 * this.net.outputs);
    this.port.onmessage = ({ data }) => {
      if (data === "reset") this.net.reset();
    };
    this.port.postMessage({ check: this.net.check() });
  }

  process([input], [output]) {
    const frames = output[0].length; // 128, unless the context was made with another renderSizeHint
    const { inputs, outputs } = this.net;
    if (this.x.length < frames * inputs) {
      this.x = new Float32Array(frames * inputs);
      this.y = new Float32Array(frames * outputs);
    }
    for (let k = 0; k < inputs; ++k) {
      const channel = input[k]; // undefined while nothing is connected
      for (let i = 0; i < frames; ++i) this.x[i * inputs + k] = channel === undefined ? 0 : channel[i];
    }
    this.net.steps(frames, this.x, this.y);
    for (let k = 0; k < output.length && k < outputs; ++k) {
      for (let i = 0; i < frames; ++i) output[k][i] = this.y[i * outputs + k];
    }
    return true;
  }
}

registerProcessor("@name", NetProcessor);
)text";

/// A page that plays an oscillator through the net and compares the worklet with its own thread.
constexpr std::string_view kPage =
    R"text(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>@name</title>
<style>
  body { font: 16px/1.5 sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
  canvas { width: 100%; height: 12rem; border: 1px solid #bbb; }
  td, th { padding: 0 1rem 0 0; text-align: left; font-weight: normal; }
</style>
<h1>@name</h1>
<p><button id="play">Play</button> an oscillator through the net, in blocks of 128 samples.
<p>Input (grey) and output (blue) of the first 10 ms:
<canvas id="plot" width="1320" height="360"></canvas>
<table id="figures"></table>
<script type="module">
import { Net } from "./@name.js";

const RATE = 48000;
const FRAMES = 128 * 375; // 1 s
const figures = {};

/** Connects an oscillator with the net, in a context of any kind. */
const effect = async (context, wasm, { inputs, outputs }) => {
  await context.audioWorklet.addModule("worklet.js");
  const node = new AudioWorkletNode(context, "@name", {
    channelCount: inputs,
    channelCountMode: "explicit",
    outputChannelCount: [outputs],
    processorOptions: { wasm },
  });
  const checked = new Promise((resolve, reject) => {
    node.port.onmessage = ({ data }) => resolve(data.check);
    node.onprocessorerror = () => reject(new Error("the processor failed"));
  });
  const oscillator = new OscillatorNode(context, { type: "sawtooth", frequency: 220 });
  oscillator.connect(node);
  oscillator.start();
  return { node, oscillator, checked };
};

/** Renders a second with the worklet and computes the same on this thread. */
const compare = async (wasm) => {
  const net = await Net.load(wasm);
  const { inputs, outputs } = net;
  const context = new OfflineAudioContext(inputs + outputs, FRAMES, RATE);
  const { node, oscillator, checked } = await effect(context, wasm, net);
  const merger = new ChannelMergerNode(context, { numberOfInputs: inputs + outputs });
  const splitter = new ChannelSplitterNode(context, { numberOfOutputs: outputs });
  for (let k = 0; k < inputs; ++k) oscillator.connect(merger, 0, k);
  node.connect(splitter);
  for (let k = 0; k < outputs; ++k) splitter.connect(merger, k, inputs + k);
  merger.connect(context.destination);
  const rendered = await context.startRendering();
  const channels = Array.from({ length: inputs + outputs }, (_, k) => rendered.getChannelData(k));

  const x = Float32Array.from({ length: FRAMES * inputs }, (_, i) => channels[i % inputs][Math.floor(i / inputs)]);
  const y = new Float32Array(FRAMES * outputs);
  const began = performance.now();
  net.steps(FRAMES, x, y);
  figures["ns per step on this thread"] = Math.round(((performance.now() - began) * 1e6) / FRAMES);
  const bits = new Uint32Array(y.buffer);
  let different = 0;
  for (let k = 0; k < outputs; ++k) {
    const expected = new Uint32Array(channels[inputs + k].slice().buffer);
    for (let i = 0; i < FRAMES; ++i) different += bits[i * outputs + k] !== expected[i];
  }
  figures["check on this thread"] = net.check();
  figures["check in the worklet"] = await checked;
  figures["steps with other bits in the worklet"] = `${different} of ${FRAMES}`;
  figures["largest output"] = y.reduce((most, value) => Math.max(most, Math.abs(value)), 0).toFixed(4);
  plot(channels[0], channels[inputs]);
  return figures["check on this thread"] === 0 && figures["check in the worklet"] === 0 && different === 0;
};

const plot = (...signals) => {
  const canvas = document.querySelector("#plot");
  const drawing = canvas.getContext("2d");
  const shown = RATE / 100;
  signals.forEach((signal, k) => {
    drawing.strokeStyle = ["#999", "#0057b8"][k];
    drawing.lineWidth = 3;
    drawing.beginPath();
    for (let i = 0; i < shown; ++i) {
      drawing.lineTo((i * canvas.width) / shown, (canvas.height / 2) * (1 - 0.9 * signal[i]));
    }
    drawing.stroke();
  });
};

const play = (wasm, sizes) => {
  let context;
  const button = document.querySelector("#play");
  button.onclick = async () => {
    if (context) {
      await context.close();
      context = undefined;
      button.textContent = "Play";
      return;
    }
    context = new AudioContext({ sampleRate: RATE });
    button.textContent = "Stop";
    const { node } = await effect(context, wasm, sizes);
    node.connect(new GainNode(context, { gain: 0.2 })).connect(context.destination);
  };
};

let good = false;
try {
  const wasm = await (await fetch("@name.wasm")).arrayBuffer();
  figures["bytes of @name.wasm"] = wasm.byteLength;
  good = await compare(wasm);
  play(wasm, await Net.load(wasm));
} catch (error) {
  figures.error = `${error}`;
}
document.body.dataset.result = good ? "passed" : "failed";
document.querySelector("#figures").append(...Object.entries(figures).map(([name, value]) => {
  const row = document.createElement("tr");
  row.append(...[name, value].map((text) => Object.assign(document.createElement("td"), { textContent: text })));
  return row;
}));
if (location.search === "?report") fetch("report", { method: "POST", body: JSON.stringify({ good, ...figures }) });
</script>
)text";

}  // namespace

std::map<std::string, std::string> browser_folder(const FrozenNet& net, const std::string& name) {
  const detail::StepPorts ports = detail::step_ports(net, name);
  if (!ports.has_steps)
    throw ValueError("browser_folder: a net that strides or looks ahead has no " + name + "_steps for the module");
  std::map<std::string, std::string> files{{name + ".h", net.header}, {name + ".c", net.source}};
  const std::array<std::pair<std::string, std::string_view>, 6> texts{{{"README.md", kReadme},
                                                                       {name + "_wasm.c", kSizes},
                                                                       {name + ".js", kModule},
                                                                       {name + ".d.ts", kTypes},
                                                                       {"worklet.js", kWorklet},
                                                                       {"index.html", kPage}}};
  for (const auto& [path, text] : texts) files[path] = detail::named(text, name);
  return files;
}

}  // namespace ferrite::exchange
