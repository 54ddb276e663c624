/**
 * Runs proofs of work in rounds that begin together, so that no hardware can prove work for two executors one after the
 * other.
 */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { Facts } from '../../checks/check.ts';
import type { GpuProofFacts, ProofFacts, Unanswered } from '../../checks/measured.ts';
import type { ProofBaselines } from '../../checks/proof-baseline.service.ts';
import { gpuProofFacts } from './gpu-proof.ts';
import { type ProofSize, proofFacts } from './host-proof.ts';
import type { Verifier } from './verifier.ts';

/** Maximum wait for all executors of a round. Executors that are not ready by then prove later than the others. */
const MAX_WAIT_MS = 60_000;
/** Maximum number of proofs in parallel; verifying them costs CPU time too. */
const MAX_PARALLEL = 64;

/** `gpu_proof` is null for hosts without real cards. */
export type Proofs = { proof: ProofFacts | null; gpu_proof: GpuProofFacts | null };

export type ProofRounds = ReturnType<typeof createProofRounds>;
export type ProofRound = ReturnType<ProofRounds['begin']>;
export type ProofPlace = ReturnType<ProofRound['place']>;

export type ProofRoundOptions = {
  clock: Clock;
  random: Random;
  /** Null disables proofs. */
  size: ProofSize | null;
  /** Milliseconds for which a proof is reused. */
  intervalMs: number;
  baselines: Pick<ProofBaselines, 'expected'>;
  verifier: Verifier;
  /** Called with the duration of each proof. */
  onProven(device: 'cpu' | 'gpu', ms: number): void;
};

const NOTHING: Proofs = { proof: null, gpu_proof: null };

/** Proofs that were requested but not answered. */
export function unprovenIn({ proof, gpu_proof }: Proofs): Unanswered[] {
  return [gpu_proof, proof].flatMap((each) => {
    if (each?.status !== 'not_measured') return [];
    return [{ question: 'proof', problem: each.detail, repeated: each.repeated }];
  });
}

export function createProofRounds(options: ProofRoundOptions) {
  const { clock, random, size, intervalMs, baselines, verifier } = options;
  const places = createSemaphore(MAX_PARALLEL);
  let proven = new Map<string, { atMs: number; proofs: Proofs }>();

  function latest(executorId: string): Proofs | null {
    const last = proven.get(executorId);
    const isFresh = last !== undefined && clock.monotonicMs() - last.atMs < intervalMs;
    if (!isFresh) return null;
    const { proof, gpu_proof } = last.proofs;
    return {
      proof: proof && { ...proof, repeated: true },
      gpu_proof: gpu_proof && { ...gpu_proof, repeated: true },
    };
  }

  async function proveNow(
    { executor, inventory, receivedMs, measured }: Facts & { inventory: object },
    client: AgentClient,
    size: ProofSize,
  ): Promise<Proofs> {
    const { id: executorId } = executor;
    const deps = { client, clock, random, verifier };
    const roundTripMs = await measureRoundTrip(client, clock, receivedMs - measured.asked_ms);
    const requestFor = async (device: 'cpu' | 'gpu') => {
      return {
        executorId,
        roundTripMs,
        expected: await baselines.expected(executorId, inventory, device),
      };
    };
    const proofs = await places.run(async (): Promise<Proofs> => {
      // Cards prove first, close to the common start, because cards are the hardware that hosts are most likely to
      // share.
      const onCards = { ...(await requestFor('gpu')), size: size.gpu, inventory };
      const gpu_proof = await gpuProofFacts(deps, onCards);
      return { gpu_proof, proof: await proofFacts(deps, { ...(await requestFor('cpu')), size }) };
    });
    const { proof, gpu_proof } = proofs;
    for (const each of [proof, gpu_proof]) {
      if (each?.status === 'proven' && each.ms !== null) options.onProven(each.device, each.ms);
    }
    if (proof?.status !== 'not_measured') {
      proven.set(executorId, { atMs: clock.monotonicMs(), proofs });
    }
    return proofs;
  }

  return {
    /** Starts a round for `count` executors. */
    begin(count: number) {
      const barrier = createBarrier(clock, count, MAX_WAIT_MS);
      return {
        /** Place of one executor in the round. The executor either proves or leaves. */
        place() {
          let isDone = false;
          function leave(): void {
            if (!isDone) barrier.leave();
            isDone = true;
          }
          return {
            /** Other executors no longer wait for this place. Has no effect after `prove`. */
            leave,
            /**
             * Returns the last proofs while they are fresh. Otherwise requests new proofs if `isFree`, which means that
             * the host has no pod of the marketplace. Returns no proofs for rented and unreachable hosts.
             */
            async prove(facts: Facts, client: AgentClient, isFree: boolean): Promise<Proofs> {
              const { executor, inventory } = facts;
              const last = latest(executor.id);
              const isDue = isFree && !executor.rented && last === null;
              if (size === null || inventory === null || !isDue) {
                leave();
                return executor.rented ? NOTHING : (last ?? NOTHING);
              }
              isDone = true;
              await barrier.arrive();
              return proveNow({ ...facts, inventory }, client, size);
            },
          };
        },
      };
    },
    /** Drops the proofs of executors that are not in `executorIds`. */
    retain(executorIds: ReadonlySet<string>): void {
      proven = new Map([...proven].filter(([id]) => executorIds.has(id)));
    },
  };
}

/**
 * Network round trip in milliseconds: the faster of two requests, for an inventory and for a list of pods. The list
 * costs the agent no work.
 */
async function measureRoundTrip(
  client: AgentClient,
  clock: Clock,
  inventoryMs: number,
): Promise<number> {
  const beganMs = clock.monotonicMs();
  const isAnswered = await client.listPods().then(
    () => true,
    () => false,
  );
  const listMs = isAnswered ? clock.monotonicMs() - beganMs : 0;
  return Math.max(0, Math.min(inventoryMs, listMs));
}

export type Barrier = ReturnType<typeof createBarrier>;

/** Creates a barrier for `count` participants. The barrier opens at the latest `maxWaitMs` after the first arrival. */
export function createBarrier(clock: Clock, count: number, maxWaitMs: number) {
  const opened = Promise.withResolvers<void>();
  const waiting = new AbortController();
  let missing = count;

  function open(): void {
    waiting.abort();
    opened.resolve();
  }

  function countDown(): void {
    missing -= 1;
    if (missing <= 0) open();
  }

  return {
    /** Resolves once all other participants arrived or left, or at the timeout. */
    arrive(): Promise<void> {
      if (missing === count) clock.sleep(maxWaitMs, waiting.signal).then(open, () => undefined);
      countDown();
      return opened.promise;
    },
    /** Withdraws a participant. */
    leave: countDown,
  };
}
