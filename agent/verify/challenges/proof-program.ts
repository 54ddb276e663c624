/**
 * Runs the proof program of `agent/gpu-proof` on a device, in a container that ends with its session. The container of a
 * card has only that card and a read-only file system; that of the disk proof writes into its own layer, which is on the
 * disk of the pods. No container has a network. Its time limit applies even if the agent has ended. The program answers
 * each line with a line of JSON.
 */

import { z } from 'zod';
import {
  CARD_FAULTS,
  type CardCommitment,
  Filled,
  type FilledDevice,
  MAX_OPENED_LEAVES,
  OpenedRow,
  Product,
  ReadFill,
} from '#shared/api/agent/challenges.ts';
import { blocksOf, FILL_BLOCK_BYTES, type FillLayout } from '#shared/proof-of-work/fill.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import {
  type ContainerEngine,
  type ContainerSpec,
  EngineError,
  LABELS,
} from '../../containers/engine/engine.ts';
import type { ExecEngine, ExecProcess } from '../../containers/engine/exec.ts';
import type { GpuDriver } from '../../gpu/gpu-driver.ts';

const CARD_PROGRAM = '/proof';
const HOST_PROGRAM = '/proof-host';
/** File of the disk proof, in the container. The program unlinks it as soon as it is open. */
const DISK_FILE = '/tmp/fill';
const MIB = 1024 ** 2;
/** Memory for the driver's context and for answers. */
const CARD_MEMORY_BYTES = 2 * 1024 * MIB;
const HOST_MEMORY_BYTES = 128 * MIB;
/** Blocks of a fill for each block's worth of its hash tree: two hashes for each leaf, rounded. */
const TREE_SHARE = 32;
/** Longest time for which a fill is kept after its commitment. */
export const KEPT_MS = 300_000;
/** Added to deadline and `KEPT_MS`, because the engine needs time to start the container. */
const HOLD_MARGIN_S = 30;
const MS_PER_SECOND = 1_000;

export type Fill = { layout: FillLayout; seed: Uint8Array };
export type ProductTask = { n: number; rounds: number; seed: Uint8Array };

/** Rows to open, by round, with the seed of each round. */
export type RoundRows = { round: number; seed: Uint8Array; indices: readonly number[] };

/** `image` is the result of `image()`. */
export type Run = { image: string; deadlineMs: number; signal: AbortSignal };

type Fault = NonNullable<CardCommitment['fault']>;
/** Result of a request: the answer, or a fault. */
export type Answer<T> = { done: T } | { fault: Fault };

/** A running program. Requests reject with the signal's reason when it aborts; other failures are faults. */
export type ProgramSession = {
  fill(fill: Fill, signal: AbortSignal): Promise<Answer<Filled>>;
  /** Computes products, while the memory stays filled. */
  product(task: ProductTask, signal: AbortSignal): Promise<Answer<z.output<typeof Product>>>;
  /** Opens rows of the products, in the requested order. */
  rows(rounds: readonly RoundRows[], signal: AbortSignal): Promise<Answer<OpenedRow[]>>;
  walk(
    walk: { nonce: string; steps: number },
    signal: AbortSignal,
  ): Promise<Answer<ReadFill['states']>>;
  leaves(indices: readonly number[], signal: AbortSignal): Promise<Answer<ReadFill['leaves']>>;
  /** Ends the program, which frees its memory, and removes the container. */
  end(): Promise<void>;
};

export type ProofProgram = ReturnType<typeof createProofProgram>;

export type ProofProgramOptions = {
  executorId: string;
  random: Random;
  engine: Pick<
    ContainerEngine,
    'inspectImage' | 'createContainer' | 'startContainer' | 'removeContainer' | 'listContainers'
  >;
  execEngine(): Promise<Pick<ExecEngine, 'start'>>;
  gpu: Pick<GpuDriver, 'kind'>;
  image: string;
};

export function createProofProgram(options: ProofProgramOptions) {
  const { executorId, random, engine, gpu } = options;
  const labels = { [LABELS.executor]: executorId, [LABELS.kind]: 'proof' };

  function specOf(device: FilledDevice, fill: Fill | null, run: Run): ContainerSpec {
    const seconds = Math.ceil((run.deadlineMs + KEPT_MS) / MS_PER_SECOND) + HOLD_MARGIN_S;
    const { program, memoryBytes } = placeOf(device, fill);
    return {
      name: `podwright-proof-${random.uuid()}`,
      image: run.image,
      labels: { ...labels, [LABELS.managed]: '1' },
      entrypoint: [program, 'hold', String(seconds)],
      command: [],
      environment: {},
      network: null,
      ports: [],
      ...(device === 'disk' ? {} : { readOnlyRoot: true }),
      gpuUuids: isCard(device) ? [device] : [],
      limits: { cpuCores: 1, memoryBytes, shmBytes: 0, pids: 64 },
      stopGraceSeconds: 0,
    };
  }

  async function startIn(containerId: string, argv: string[]): Promise<ExecProcess> {
    await engine.startContainer(containerId);
    const request = { containerId, argv, environment: {}, user: '', tty: false };
    return (await options.execEngine()).start(request);
  }

  return {
    /** Returns the id of the proof image; null if it was not built. */
    image: async (): Promise<string | null> =>
      (await engine.inspectImage(options.image))?.id ?? null,

    /** True: the host has real cards. */
    hasCards: gpu.kind === 'nvidia',

    /** Starts the program on a device. End the session afterwards. `fill` sizes the container. */
    async start(
      device: FilledDevice,
      fill: Fill | null,
      run: Run,
    ): Promise<Answer<ProgramSession>> {
      try {
        const containerId = await engine.createContainer(specOf(device, fill, run));
        try {
          run.signal.throwIfAborted();
          const argv = [placeOf(device, fill).program, ...argumentsFor(device)];
          const running = await startIn(containerId, argv);
          return { done: sessionOf(running, () => engine.removeContainer(containerId)) };
        } catch (error) {
          await engine.removeContainer(containerId);
          throw error;
        }
      } catch (error) {
        run.signal.throwIfAborted();
        return { fault: faultOf(error) };
      }
    },

    /** Removes the containers of interrupted sessions. Call it while no session is open. */
    async removeLeftovers(): Promise<void> {
      for (const { id } of await engine.listContainers(labels)) await engine.removeContainer(id);
    },
  };
}

const isCard = (device: FilledDevice): boolean => device !== 'memory' && device !== 'disk';
const argumentsFor = (device: FilledDevice) => (device === 'disk' ? [device, DISK_FILE] : [device]);

/** Program for a device, and the memory that it needs on the host. */
function placeOf(device: FilledDevice, fill: Fill | null) {
  if (isCard(device)) return { program: CARD_PROGRAM, memoryBytes: CARD_MEMORY_BYTES };
  const bytes = fill === null ? 0 : blocksOf(fill.layout) * FILL_BLOCK_BYTES;
  const inMemory = device === 'memory' ? bytes : 0;
  const memoryBytes = HOST_MEMORY_BYTES + inMemory + Math.ceil(bytes / TREE_SHARE);
  return { program: HOST_PROGRAM, memoryBytes };
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const Rows = z.object({ rows: z.array(OpenedRow).max(MAX_OPENED_LEAVES) });
const States = ReadFill.pick({ states: true });
const Leaves = ReadFill.pick({ leaves: true });

/** Streams of a running program. */
export type RunningProgram = Pick<ExecProcess, 'output' | 'close'> & {
  input: Pick<ExecProcess['input'], 'write'>;
};

/** Speaks with a running program. `remove` is called at the end, after the program was closed. */
export function sessionOf(running: RunningProgram, remove: () => Promise<void>): ProgramSession {
  const nextLine = linesOf(running);

  async function ask<T>(
    schema: z.ZodType<T>,
    words: readonly (string | number)[],
    signal: AbortSignal,
  ): Promise<Answer<T>> {
    signal.throwIfAborted();
    const abort = () => running.close();
    signal.addEventListener('abort', abort, { once: true });
    try {
      running.input.write(`${words.join(' ')}\n`);
      return answerIn(schema, await nextLine());
    } catch (error) {
      signal.throwIfAborted();
      return { fault: faultOf(error) };
    } finally {
      signal.removeEventListener('abort', abort);
      signal.throwIfAborted();
    }
  }

  return {
    fill: ({ layout, seed }, signal) =>
      ask(Filled, ['fill', layout.lanes, layout.laneBlocks, hex(seed)], signal),
    product: ({ n, rounds, seed }, signal) =>
      ask(Product, ['product', n, rounds, hex(seed)], signal),
    async rows(rounds, signal) {
      const asked = rounds.flatMap(({ round, seed, indices }) => [
        round,
        hex(seed),
        indices.join(','),
      ]);
      const answer = await ask(Rows, ['rows', ...asked], signal);
      return 'done' in answer ? { done: answer.done.rows } : answer;
    },
    async walk({ nonce, steps }, signal) {
      const answer = await ask(States, ['walk', nonce, steps], signal);
      return 'done' in answer ? { done: answer.done.states } : answer;
    },
    async leaves(indices, signal) {
      const answer = await ask(Leaves, ['leaves', indices.join(',')], signal);
      return 'done' in answer ? { done: answer.done.leaves } : answer;
    },
    async end() {
      running.close();
      await remove();
    },
  };
}

/** Maximum length of an answer: 32 rows of the largest product, each with 88 KiB of base64. */
const MAX_LINE_CHARS = 3_200_000;

/** Returns a function that reads the next line of the program's output; the rest of the output if no line follows. */
function linesOf({ output }: RunningProgram): () => Promise<string> {
  const chunks = output[Symbol.asyncIterator]();
  let rest = '';
  return async () => {
    while (!rest.includes('\n') && rest.length <= MAX_LINE_CHARS) {
      const { done, value } = await chunks.next();
      if (done === true) break;
      if (value.stream === 'stdout') rest += Buffer.from(value.data).toString('latin1');
    }
    const end = rest.indexOf('\n');
    const line = end === -1 ? rest : rest.slice(0, end);
    rest = end === -1 ? '' : rest.slice(end + 1);
    return line;
  };
}

const ProgramFault = z.object({ fault: z.string(), detail: z.string().max(1_000) });

function answerIn<T>(schema: z.ZodType<T>, line: string): Answer<T> {
  const value = jsonIn(line);
  const answer = schema.safeParse(value);
  if (answer.success) return { done: answer.data };
  const said = ProgramFault.safeParse(value);
  if (!said.success) return { fault: failedWith('The program printed no valid answer') };
  const { fault, detail } = said.data;
  const code = CARD_FAULTS.find((known) => known === fault);
  return { fault: code === undefined ? failedWith(detail) : { code, detail } };
}

function jsonIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** The fault for errors without a specific code. */
function failedWith(detail: string): Fault {
  return { code: 'GPU_PROOF_FAILED', detail: detail.slice(0, 1_000) };
}

function faultOf(error: unknown): Fault {
  if (!(error instanceof EngineError)) throw error;
  const detail = messageOf(error);
  return error.kind === 'device' ? { code: 'DEVICE_ABSENT', detail } : failedWith(detail);
}
