/** Whether containers can be run in containers here, found out by doing what an engine inside would do first. */
import type { VerifyStep } from '#shared/api/agent/inventory.ts';
import type { ContainerSpec, EngineInfo } from '../containers/engine/engine.ts';

/** The runtime that pods with an engine of their own get. */
export const NESTED_RUNTIME = 'sysbox-runc';
export const NESTED_STEP: VerifyStep['name'] = 'docker_in_docker';

/** Layers on layers, processes and devices of its own: what every inner container needs, and no common runtime gives. */
const AS_AN_ENGINE = [
  'set -e',
  'mkdir -p /tmp/nested',
  'busybox mount -t tmpfs tmpfs /tmp/nested',
  'cd /tmp/nested',
  'mkdir lower upper work merged',
  'echo seen >lower/file',
  'busybox mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged',
  '[ "$(cat merged/file)" = seen ]',
  'busybox unshare -m -p -f true',
].join('\n');

/** Whether the engine says that it has the runtime. */
export const isNestedOffered = ({ runtimes }: Pick<EngineInfo, 'runtimes'>): boolean =>
  runtimes.includes(NESTED_RUNTIME);

/** The probe that tries it. */
export function nestedSpec(probe: ContainerSpec): ContainerSpec {
  const command = ['/bin/sh', '-c', AS_AN_ENGINE];
  return { ...probe, entrypoint: command, gpuUuids: [], runtime: NESTED_RUNTIME };
}
