/** Proofs of work, which begin together: no hardware can answer for two executors one after the other. */
import type { AgentClient } from '#shared/agent-api/agent-client.ts';
import type { Clock } from '#shared/clock.ts';
import type { Random } from '#shared/random.ts';
import { createSemaphore } from '#shared/semaphore.ts';
import type { Facts } from '../checks/check.ts';
import type { ProofFacts } from '../checks/measured.ts';
import { createBarrier } from '../pow/barrier.ts';
import { type ProofSize, proofFacts } from '../pow/proof-facts.ts';

/** Who takes longer to be looked at than this proves after the others. */
const MAX_WAIT_MS = 60_000;
/** Under way at once; verifying them is work, too. */
const TOGETHER = 64;

export type ProofRounds = ReturnType<typeof createProofRounds>;
export type ProofRound = ReturnType<ProofRounds['begin']>;

export type ProofRoundOptions = {
  clock: Clock;
  random: Random;
  /** Null: nothing is to be proven. */
  size: ProofSize | null;
  /** A proof counts for as long. */
  intervalMs: number;
  expectedMs(inventory: NonNullable<Facts['inventory']>): Promise<number | null>;
};

export function createProofRounds(options: ProofRoundOptions) {
  const { clock, random, size, intervalMs } = options;
  const places = createSemaphore(TOGETHER);
  let proven = new Map<string, { atMs: number; proof: ProofFacts }>();

  function latest(executorId: string): ProofFacts | null {
    const last = proven.get(executorId);
    const isFresh = last !== undefined && clock.monotonicMs() - last.atMs < intervalMs;
    return isFresh ? { ...last.proof, repeated: true } : null;
  }

  async function proveNow(
    { executor, inventory, receivedMs, measured }: Facts & { inventory: object },
    client: AgentClient,
    asked: ProofSize,
  ): Promise<ProofFacts> {
    const linkMs = Math.max(0, receivedMs - measured.asked_ms);
    const expectedMs = await options.expectedMs(inventory);
    const ask = { executorId: executor.id, size: asked, inventory, expectedMs, linkMs };
    const proof = await places.run(() => proofFacts({ client, clock, random }, ask));
    if (proof.status !== 'not_measured') {
      proven.set(executor.id, { atMs: clock.monotonicMs(), proof });
    }
    return proof;
  }

  return {
    /** For `count` executors; each of them proves or leaves once. */
    begin(count: number) {
      const barrier = createBarrier(clock, count, MAX_WAIT_MS);
      return {
        leave: barrier.leave,
        /** The last proof while it counts. Null for hosts that are rented or away, and where none is asked for. */
        async prove(facts: Facts, client: AgentClient): Promise<ProofFacts | null> {
          const { executor, inventory } = facts;
          const last = latest(executor.id);
          if (size === null || inventory === null || executor.rented || last !== null) {
            barrier.leave();
            return executor.rented ? null : last;
          }
          await barrier.arrive();
          return proveNow({ ...facts, inventory }, client, size);
        },
      };
    },
    /** Forgets all others. */
    keep(executorIds: ReadonlySet<string>): void {
      proven = new Map([...proven].filter(([id]) => executorIds.has(id)));
    },
  };
}
