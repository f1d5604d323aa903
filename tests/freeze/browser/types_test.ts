/** Uses every declaration of NAME.d.ts; run.py compiles this with tsc if it is there. */
import { Net, NetOptions, NetSource } from "./net.js";

const source: NetSource = new URL("net.wasm", "http://localhost/");
const options: NetOptions = { block: 64 };

export const everything = async (bytes: ArrayBuffer, compiled: WebAssembly.Module): Promise<number> => {
  const net: Net = await Net.load(source, options);
  await Promise.all([Net.load("net.wasm"), Net.load(bytes), Net.load(compiled)]);
  const other = Net.compiled(bytes, { block: 16 }).another();
  const x = new Float32Array(2 * net.inputs);
  const y = new Float32Array(2 * net.outputs);
  net.step(x, y);
  net.step([0], [0]);
  net.steps(2, x, y);
  const saved: Uint8Array = net.save();
  other.restore(saved);
  other.reset();
  other.free();
  // @ts-expect-error: the constructor is private
  new Net();
  return net.check() + net.savedBytes;
};
