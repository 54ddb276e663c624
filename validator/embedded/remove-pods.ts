/** Takes all pods along when a local marketplace stops. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Central } from '../central/app.ts';

const GONE_WITHIN_MS = 30_000;
const POLL_MS = 100;

/** Resolves when none is left on a node, or too late: then the next start goes on with the rest. */
export async function removePods(
  { pods }: Central,
  clock: Clock,
  progress: (line: string) => void,
): Promise<void> {
  const count = await pods.removeAll();
  if (count === 0) return;
  progress(`removing ${count} ${count === 1 ? 'pod' : 'pods'}`);
  const giveUpMs = clock.monotonicMs() + GONE_WITHIN_MS;
  while ((await pods.count()) > 0) {
    if (clock.monotonicMs() > giveUpMs) {
      progress('some pods could not be removed in time; the next start goes on with them');
      return;
    }
    await clock.sleep(POLL_MS);
  }
}
