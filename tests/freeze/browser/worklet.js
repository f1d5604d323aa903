/** The frozen net `net` as an audio processor: input channels are the net's inputs, output channels its outputs. */
import { Net } from "./net.js";

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

registerProcessor("net", NetProcessor);
