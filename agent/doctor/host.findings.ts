/** Judges kernel, memory and rights. Pure. */
import { type Finding, fail, ok, unknown, warn } from '#shared/check/finding.ts';
import type { HostFacts } from './host.facts.ts';

/** Older ones lack what pods' limits and current drivers need. */
const OLDEST_KERNEL = [5, 4] as const;
/** Below it, a busy host kills its own services. */
const LEAST_RESERVE_BYTES = 512 * 2 ** 20;
/** Less than this for all pods is no host to rent. */
const LEAST_FOR_PODS_BYTES = 2 ** 30;
const BYTES_PER_MIB = 2 ** 20;

export function hostFindings(facts: HostFacts): Finding[] {
  return [rights(facts), kernel(facts), memory(facts)];
}

function rights({ root }: HostFacts): Finding {
  if (root) return ok('rights', 'root: everything could be looked at');
  const unseen = 'firewall rules and other users’ processes could not be seen';
  const what = `not root: ${unseen}, and such an agent cannot measure or back up pods’ volumes`;
  return unknown('rights', what, 'run the doctor as the agent’s user');
}

function kernel({ kernel: text }: HostFacts): Finding {
  const [major = 0, minor = 0] = text.split('.').map((part) => Number.parseInt(part, 10));
  const [least, leastMinor] = OLDEST_KERNEL;
  const isNew = major > least || (major === least && minor >= leastMinor);
  if (isNew) return ok('kernel', `Linux ${text}`);
  return warn('kernel', `Linux ${text} is old`, `upgrade to ${OLDEST_KERNEL.join('.')} or newer`);
}

function memory({ memoryBytes, reserveBytes }: HostFacts): Finding {
  const mib = (bytes: number) => `${Math.round(bytes / BYTES_PER_MIB)} MiB`;
  const left = memoryBytes - reserveBytes;
  const what = `${mib(memoryBytes)}, of which the host keeps ${mib(reserveBytes)}`;
  if (left < LEAST_FOR_PODS_BYTES) {
    return fail('memory', `${what}: too little is left for pods`, 'lower AGENT_MEMORY_RESERVE_MIB');
  }
  if (reserveBytes >= LEAST_RESERVE_BYTES) return ok('memory', what);
  return warn('memory', `${what}: pods can starve it`, 'AGENT_MEMORY_RESERVE_MIB=1024');
}
