/** Proofs of work, which begin together: no hardware can answer for two executors one after the other. */
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

/** Who takes longer to be looked at than this proves after the others. */
const MAX_WAIT_MS = 60_000;
/** Under way at once; verifying them is work, too. */
const MAX_PARALLEL = 64;

/** `gpu_proof` is null where no real card is there to be asked. */
export type Proofs = { proof: ProofFacts | null; gpu_proof: GpuProofFacts | null };

export type ProofRounds = ReturnType<typeof createProofRounds>;
export type ProofRound = ReturnType<ProofRounds['begin']>;
export type ProofPlace = ReturnType<ProofRound['place']>;

export type ProofRoundOptions = {
  clock: Clock;
  random: Random;
  /** Null: nothing is to be proven. */
  size: ProofSize | null;
  /** A proof counts for as long. */
  intervalMs: number;
  baselines: Pick<ProofBaselines, 'expected'>;
  verifier: Verifier;
  /** Milliseconds that each proof of an executor took. */
  onProven(device: 'cpu' | 'gpu', ms: number): void;
};

const NOTHING: Proofs = { proof: null, gpu_proof: null };

/** Proofs that were asked for, and that the agent gave no answer to. */
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
    asked: ProofSize,
  ): Promise<Proofs> {
    const { id: executorId } = executor;
    const deps = { client, clock, random, verifier };
    const roundTripMs = await measureRoundTrip(client, clock, receivedMs - measured.asked_ms);
    const ask = async (device: 'cpu' | 'gpu') => {
      return {
        executorId,
        roundTripMs,
        expected: await baselines.expected(executorId, inventory, device),
      };
    };
    const proofs = await places.run(async (): Promise<Proofs> => {
      // Cards first, nearest to when all others begin: a card is what is most worth passing round.
      const onCards = { ...(await ask('gpu')), size: asked.gpu, inventory };
      const gpu_proof = await gpuProofFacts(deps, onCards);
      return { gpu_proof, proof: await proofFacts(deps, { ...(await ask('cpu')), size: asked }) };
    });
    const { proof, gpu_proof } = proofs;
    for (const each of [proof, gpu_proof]) {
      if (each !== null && each.ms !== null) options.onProven(each.device, each.ms);
    }
    if (proof?.status !== 'not_measured') {
      proven.set(executorId, { atMs: clock.monotonicMs(), proofs });
    }
    return proofs;
  }

  return {
    /** For `count` executors, each of which has a place. */
    begin(count: number) {
      const barrier = createBarrier(clock, count, MAX_WAIT_MS);
      return {
        /** Of one that proves or leaves. */
        place() {
          let isOver = false;
          function leave(): void {
            if (!isOver) barrier.leave();
            isOver = true;
          }
          return {
            /** Nobody waits for it any more; nobody does once it has proven. */
            leave,
            /**
             * The last proofs while they count; none of hosts that are rented or away, or where none is asked for, and
             * no new ones where something of ours is on the host.
             */
            async prove(facts: Facts, client: AgentClient, isFree: boolean): Promise<Proofs> {
              const { executor, inventory } = facts;
              const last = latest(executor.id);
              const isAsked = isFree && !executor.rented && last === null;
              if (size === null || inventory === null || !isAsked) {
                leave();
                return executor.rented ? NOTHING : (last ?? NOTHING);
              }
              isOver = true;
              await barrier.arrive();
              return proveNow({ ...facts, inventory }, client, size);
            },
          };
        },
      };
    },
    /** Forgets all others. */
    keep(executorIds: ReadonlySet<string>): void {
      proven = new Map([...proven].filter(([id]) => executorIds.has(id)));
    },
  };
}

/** What a question takes there and back: making an inventory is work, a list of pods is none. */
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

// MERGED validator/inspection/proof/proof-round.ts: Where some wait for each other, so that they begin one thing together.
export type Barrier = ReturnType<typeof createBarrier>;

/** For `count` of them; it opens at the latest `maxWaitMs` after the first has come. */
export function createBarrier(clock: Clock, count: number, maxWaitMs: number) {
  const opened = Promise.withResolvers<void>();
  const waiting = new AbortController();
  let missing = count;

  function open(): void {
    waiting.abort();
    opened.resolve();
  }

  function come(): void {
    missing -= 1;
    if (missing <= 0) open();
  }

  return {
    /** Resolves once all others have come too, or left, or the time is over. */
    arrive(): Promise<void> {
      if (missing === count) clock.sleep(maxWaitMs, waiting.signal).then(open, () => undefined);
      come();
      return opened.promise;
    },
    /** Of who has nothing to begin: nobody waits for it. */
    leave: come,
  };
}
