/** Providers that rent their own hosts from a second account, to raise their weight by the fees that they pay. */
import type { World } from '../world/world.ts';
import { type Renter, signUpRenter } from './account.ts';
import { codeIn, expectAnswer, RentedNode } from './answers.ts';
import { chance } from './draws.ts';
import { endPod, podRequest, podStatus, type Requester, send } from './pod-requests.ts';
import type { Provider } from './provider.ts';

export type SelfRenter = Requester & { provider: Provider };

/** Pause between two attempts to rent the host. */
const ATTEMPT_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** Creates the account from which the provider rents its host; null for a provider that does not. */
export async function signUpSelfRenter(world: World, provider: Provider): Promise<Renter | null> {
  const { name: actor, executorId: executor, cheat } = provider;
  const random = world.randomOf(`${actor} self-rental`);
  // A host that cheats shows the effect of its cheat only.
  if (!chance(random, world.scenario.supply.self_rental_permille) || cheat !== null) return null;
  const renter = await signUpRenter(world, `${actor}-renter`);
  world.journal.record({ kind: 'self-renter', actor, executor, account: renter.accountId });
  return renter;
}

/** Rents the whole host whenever it is free, until `signal` aborts. The last pod remains. */
export async function runSelfRenter(parts: SelfRenter, signal: AbortSignal): Promise<void> {
  const { world, renter } = parts;
  const { clock, journal, scenario } = world;
  const watchMs = scenario.watch_minutes * MINUTE_MS;
  let podId: string | null = null;
  for (;;) {
    await clock.sleep(podId === null ? ATTEMPT_MS : watchMs, signal);
    if (podId === null) {
      podId = await rentOwn(parts);
      if (podId === null) continue;
      const executor = parts.provider.executorId;
      journal.record({ kind: 'self-rented', actor: renter.name, pod: podId, executor });
      continue;
    }
    const status = await podStatus(parts, podId);
    if (status === 'RUNNING' || status === 'PENDING') continue;
    await endPod(parts, podId);
    podId = null;
  }
}

/** Returns the id of the pod; null if the host cannot be rented at present. */
async function rentOwn(parts: SelfRenter): Promise<string | null> {
  const { provider, renter } = parts;
  const answer = await send(parts, {
    method: 'POST',
    path: `/api/executors/${provider.executorId}/rent`,
    body: podRequest(renter),
  });
  return codeIn(answer) === null ? expectAnswer(RentedNode, answer, 'own rental').pod_id : null;
}
