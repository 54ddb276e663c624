/**
 * Runs the GPU proof: the program of `agent/gpu-proof` in one container per card. The container has only that card, no
 * network and a read-only file system. Its time limit applies even if the agent has ended. The program answers in JSON
 * lines.
 */

import { z } from 'zod';
import {
  CARD_FAULTS,
  type CardCommitment,
  MAX_OPENED_ROWS,
  OpenedRow,
  Product,
  Walked,
} from '#shared/api/agent/challenges.ts';
import type { Walk } from '#shared/proof-of-work/walk.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import {
  type ContainerEngine,
  type ContainerSpec,
  EngineError,
  LABELS,
} from '../../containers/engine/engine.ts';
import type { ExecEngine } from '../../containers/engine/exec.ts';
import type { GpuDriver } from '../../gpu/gpu-driver.ts';

const PROGRAM = '/proof';
/** Limits of a container. The memory suffices for the driver's context and the hash tree. */
const LIMITS = { cpuCores: 1, memoryBytes: 2 * 1024 ** 3, shmBytes: 0, pids: 64 };
/** Seconds that are added to the deadline, because the engine needs time to start the container. */
const HOLD_MARGIN_S = 30;
const MS_PER_SECOND = 1_000;

/** The work of one card. */
export type CardTask = {
  uuid: string;
  n: number;
  rounds: number;
  seed: Uint8Array;
  memory: { walk: Walk; seed: Uint8Array } | null;
};

/** Rows to open, by round, with the seed of each round. */
export type CardOpening = {
  uuid: string;
  n: number;
  rounds: readonly { round: number; seed: Uint8Array; indices: readonly number[] }[];
};

/** `image` is the result of `image()`. A container exits by itself some time after `deadlineMs`. */
export type Run = { image: string; deadlineMs: number; signal: AbortSignal };

export type GpuProof = ReturnType<typeof createGpuProof>;

export type GpuProofOptions = {
  executorId: string;
  clock: Clock;
  random: Random;
  engine: Pick<
    ContainerEngine,
    'inspectImage' | 'createContainer' | 'startContainer' | 'removeContainer' | 'listContainers'
  >;
  execEngine(): Promise<Pick<ExecEngine, 'start'>>;
  gpu: Pick<GpuDriver, 'kind'>;
  image: string;
};

export function createGpuProof(options: GpuProofOptions) {
  const { executorId, random, engine, gpu } = options;
  const labels = { [LABELS.executor]: executorId, [LABELS.kind]: 'proof' };

  function specOf(image: string, uuid: string, deadlineMs: number): ContainerSpec {
    const seconds = Math.ceil(deadlineMs / MS_PER_SECOND) + HOLD_MARGIN_S;
    return {
      name: `podwright-proof-${random.uuid()}`,
      image,
      labels: { ...labels, [LABELS.managed]: '1' },
      entrypoint: [PROGRAM, 'hold', String(seconds)],
      command: [],
      environment: {},
      network: null,
      ports: [],
      readOnlyRoot: true,
      gpuUuids: [uuid],
      limits: LIMITS,
      stopGraceSeconds: 0,
    };
  }

  /** Runs the program with one line of input in a container with one card; removes the container afterwards. */
  async function runProgram(
    uuid: string,
    { image, deadlineMs, signal }: Run,
    line: string,
  ): Promise<string> {
    const id = await engine.createContainer(specOf(image, uuid, deadlineMs));
    try {
      signal.throwIfAborted();
      await engine.startContainer(id);
      return await answerIn(id, line, signal);
    } finally {
      await engine.removeContainer(id);
    }
  }

  async function answerIn(containerId: string, line: string, signal: AbortSignal): Promise<string> {
    const request = { containerId, argv: [PROGRAM], environment: {}, user: '', tty: false };
    const running = await (await options.execEngine()).start(request);
    const abort = () => running.close();
    signal.addEventListener('abort', abort, { once: true });
    let answer = '';
    try {
      // The signal may have aborted while the program was started.
      signal.throwIfAborted();
      running.input.end(`${line}\n`);
      for await (const { stream, data } of running.output) {
        if (stream === 'stdout') answer += Buffer.from(data).toString('latin1');
        if (answer.length > MAX_ANSWER_CHARS) break;
      }
    } finally {
      signal.removeEventListener('abort', abort);
      running.close();
    }
    signal.throwIfAborted();
    return answer;
  }

  /** Rejects with the signal's reason; returns errors of the engine as faults of the card. */
  async function answerOf<T>(
    uuid: string,
    run: Run,
    line: string,
    read: (text: string) => Answer<T>,
  ): Promise<Answer<T>> {
    try {
      return read(await runProgram(uuid, run, line));
    } catch (error) {
      run.signal.throwIfAborted();
      if (!(error instanceof EngineError)) throw error;
      const detail = messageOf(error);
      if (error.kind !== 'device') return { fault: failedWith(detail) };
      return { fault: { code: 'DEVICE_ABSENT', detail } };
    }
  }

  async function commitCard(task: CardTask, run: Run): Promise<CardCommitment> {
    const { uuid } = task;
    const answer = await answerOf(uuid, run, commitLine(task), readCommitted);
    if ('done' in answer) return { uuid, fault: null, ...answer.done };
    return { uuid, fault: answer.fault, product: null, memory: null };
  }

  return {
    /** Returns the id of the proof image; null if GPUs are simulated or the image was not built. */
    async image(): Promise<string | null> {
      if (gpu.kind !== 'nvidia') return null;
      return (await engine.inspectImage(options.image))?.id ?? null;
    },

    /** Runs all cards in parallel. When the signal aborts, rejects once all containers are removed. */
    async commit(tasks: readonly CardTask[], run: Run): Promise<CardCommitment[]> {
      const commitments = tasks.map((task) => commitCard(task, run));
      await Promise.allSettled(commitments);
      return Promise.all(commitments);
    },

    /** Returns the rows in the requested order. Rejects when the signal aborts. */
    open: (opening: CardOpening, run: Run): Promise<Answer<OpenedRow[]>> =>
      answerOf(opening.uuid, run, openLine(opening), readOpened),

    /** Removes the containers of an interrupted run. Call it while no proof is running. */
    async removeLeftovers(): Promise<void> {
      for (const { id } of await engine.listContainers(labels)) await engine.removeContainer(id);
    },
  };
}

function commitLine({ uuid, n, rounds, seed, memory }: CardTask): string {
  const { blockBytes, blocks, steps } = memory?.walk ?? { blockBytes: 0, blocks: 0, steps: 0 };
  const words = ['commit', uuid, n, rounds, hex(seed), blockBytes, blocks, steps];
  return [...words, hex(memory?.seed ?? seed)].join(' ');
}

function openLine({ uuid, n, rounds }: CardOpening): string {
  const asked = rounds.map(({ round, seed, indices }) =>
    [round, hex(seed), indices.join(',')].join(' '),
  );
  return ['open', uuid, n, ...asked].join(' ');
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Maximum length of a line: a row of the largest product has 88 KiB of base64, its path 1 KiB. */
const MAX_LINE_CHARS = 100_000;
/** Maximum output of one run. */
const MAX_ANSWER_CHARS = MAX_OPENED_ROWS * MAX_LINE_CHARS;

const Fault = z.object({ fault: z.string(), detail: z.string().max(1_000) });
const Committed = z.object({
  roots: Product.shape.roots,
  product_ms: Product.shape.ms,
  memory: Walked.nullable(),
});

type CardFault = NonNullable<CardCommitment['fault']>;

/** Result of a run: the output, or a fault. */
type Answer<T> = { done: T } | { fault: CardFault };

/** Parses the output of `commit`: one line. */
function readCommitted(text: string): Answer<Pick<CardCommitment, 'product' | 'memory'>> {
  const line = jsonLines(text)?.[0];
  const committed = Committed.safeParse(line);
  if (!committed.success) return { fault: faultIn(line) };
  const { roots, product_ms: ms, memory } = committed.data;
  return { done: { product: { roots, ms }, memory } };
}

/** Parses the output of `open`: one line for each row. */
function readOpened(text: string): Answer<OpenedRow[]> {
  const lines = jsonLines(text);
  const rows = z.array(OpenedRow).max(MAX_OPENED_ROWS).safeParse(lines);
  return rows.success ? { done: rows.data } : { fault: faultIn(lines?.at(-1)) };
}

/** The fault for errors without a specific code. */
function failedWith(detail: string): CardFault {
  return { code: 'GPU_PROOF_FAILED', detail: detail.slice(0, 1_000) };
}

function faultIn(line: unknown): CardFault {
  const said = Fault.safeParse(line);
  if (!said.success) return failedWith('The program printed no valid answer');
  const { fault, detail } = said.data;
  const code = CARD_FAULTS.find((known) => known === fault);
  return code === undefined ? failedWith(detail) : { code, detail };
}

function jsonLines(text: string): unknown[] | null {
  try {
    const lines = text.split('\n').filter((line) => line !== '');
    return lines.map((line): unknown => JSON.parse(line));
  } catch {
    return null;
  }
}
