/**
 * Has cards prove their work, each by the program of `agent/gpu-proof` in a container of its own: with that card
 * alone, no network, nothing to write to, and an end that comes by itself when the agent is gone.
 */
import type { CardCommitment, OpenedRow } from '#shared/api/agent/challenges.ts';
import { BUILTIN_HOST } from '#shared/api/agent/images.ts';
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
import {
  type Answer,
  failedWith,
  MAX_ANSWER_CHARS,
  readCommitted,
  readOpened,
} from './gpu-proof.answer.ts';

/** Built by the provider from `agent/gpu-proof`; never pulled. */
export const GPU_PROOF_REFERENCE = `${BUILTIN_HOST}gpu-proof:1`;

const PROGRAM = '/proof';
/** A context of the driver, and the tree of hashes. */
const LIMITS = { cpuCores: 1, memoryBytes: 2 * 1024 ** 3, shmBytes: 0, pids: 64 };
/** Beyond the deadline: the engine needs some of it to start. */
const HOLD_MARGIN_S = 30;
const MS_PER_SECOND = 1_000;

/** What one card is asked to commit to. */
export type CardTask = {
  uuid: string;
  n: number;
  rounds: number;
  seed: Uint8Array;
  memory: { walk: Walk; seed: Uint8Array } | null;
};

/** The rows of rounds whose seeds are known. */
export type CardOpening = {
  uuid: string;
  n: number;
  rounds: readonly { round: number; seed: Uint8Array; indices: readonly number[] }[];
};

/** `image` is what `image()` gave; a container ends by itself some time after `deadlineMs`. */
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

  /** What the program answers to one line in a container with one card. The container is gone afterwards. */
  async function ask(
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
    const giveUp = () => running.close();
    signal.addEventListener('abort', giveUp, { once: true });
    let answer = '';
    try {
      // It may have been given up while the program was started.
      signal.throwIfAborted();
      running.input.end(`${line}\n`);
      for await (const { stream, data } of running.output) {
        if (stream === 'stdout') answer += Buffer.from(data).toString('latin1');
        if (answer.length > MAX_ANSWER_CHARS) break;
      }
    } finally {
      signal.removeEventListener('abort', giveUp);
      running.close();
    }
    signal.throwIfAborted();
    return answer;
  }

  /** Rejects with the signal's reason; every other failure is a fault of the card. */
  async function answerOf<T>(
    uuid: string,
    run: Run,
    line: string,
    read: (text: string) => Answer<T>,
  ): Promise<Answer<T>> {
    try {
      return read(await ask(uuid, run, line));
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
    /** The image to do it with; null where cards are simulated, or it was not built. */
    async image(): Promise<string | null> {
      if (gpu.kind !== 'nvidia') return null;
      return (await engine.inspectImage(options.image))?.id ?? null;
    },

    /** All at once. Rejects when the signal aborts, once all containers are gone. */
    async commit(tasks: readonly CardTask[], run: Run): Promise<CardCommitment[]> {
      const commitments = tasks.map((task) => commitCard(task, run));
      await Promise.allSettled(commitments);
      return Promise.all(commitments);
    },

    /** Rows in the order of their rounds, as asked. Rejects when the signal aborts. */
    open: (opening: CardOpening, run: Run): Promise<Answer<OpenedRow[]>> =>
      answerOf(opening.uuid, run, openLine(opening), readOpened),

    /** Removes the containers of an earlier run; to be called while none is under way. */
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
