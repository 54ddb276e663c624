/** Charged time of pods by GPU model. Pure. */
import type { UsedTime } from './fault-effects.ts';
import type { Usage } from './report.ts';
import { sum } from './statistics.ts';

const HOUR_MS = 3_600_000;

/** Returns the models in the order of their names. */
export function usageOf(used: readonly UsedTime[], gpuOf: (executor: string) => string): Usage[] {
  const charged = used.filter(({ isCharged }) => isCharged);
  const hours = ({ fromMs, toMs }: UsedTime) => (toMs - fromMs) / HOUR_MS;
  return [...Map.groupBy(charged, ({ executor }) => gpuOf(executor))]
    .map(([gpu, group]) => ({
      gpu,
      gpu_hours: sum(group.map((time) => hours(time) * time.gpus)),
      cost_usd: sum(group.map((time) => hours(time) * time.usdPerHour)),
    }))
    .sort((a, b) => (a.gpu < b.gpu ? -1 : 1));
}
