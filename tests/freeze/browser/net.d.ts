/** A URL of the .wasm file, its bytes, or the compiled module. */
export type NetSource = string | URL | BufferSource | WebAssembly.Module;

export interface NetOptions {
  /** The steps that one call of WebAssembly computes at most, default 128. Longer sequences take several calls. */
  block?: number;
}

/** One instance of the frozen net `net`, which keeps its state between steps. A step allocates nothing. */
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
