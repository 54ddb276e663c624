/** Whose a card is that several executors passed with: of the first, while it is there. Pure. */
import type { GpuClaimRow as Claim } from '../store/tables.ts';
import type { Measured } from './measured.ts';

/** An executor with the cards that it shows, and the key of its agent. */
export type Claimant = { executorId: string; agentKey: string; uuids: readonly string[] };

/** Of claims that were made before keys were kept with them. */
export const UNKNOWN_KEY = '';

/**
 * The claimant's cards that are another's. Whoever was seen with a card since `sinceMs` keeps it from everybody who came
 * later; who was away for longer has it back when it returns with its key, whoever passed with it meanwhile.
 */
export function takenFrom(
  { executorId, agentKey, uuids }: Claimant,
  claims: readonly Claim[],
  sinceMs: number,
): Measured['taken'] {
  const isOwn = ({ executor_id: id, agent_key: key }: Claim) =>
    id === executorId && (key === agentKey || key === UNKNOWN_KEY);
  return [...new Set(uuids)].flatMap((uuid) => {
    const onCard = claims.filter((claim) => claim.uuid === uuid);
    const own = onCard.find(isOwn);
    const [first] = onCard
      .filter((claim) => claim.executor_id !== executorId && claim.seen_ms >= sinceMs)
      .filter((claim) => own === undefined || inOrder(claim, own) < 0)
      .sort(inOrder);
    return first === undefined ? [] : [{ uuid, executor_id: first.executor_id }];
  });
}

/** Of two that came at once one is the first, whoever asks. */
function inOrder(one: Claim, other: Claim): number {
  const byTime = one.first_ms - other.first_ms;
  return byTime === 0 ? (one.executor_id < other.executor_id ? -1 : 1) : byTime;
}
