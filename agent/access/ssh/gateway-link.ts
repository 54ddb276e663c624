/** The agent's end of the files that it shares with the SSH gateway. */
import { existsSync } from 'node:fs';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import {
  type GatewayPodStatus,
  type GatewaySnapshot,
  GatewayStatus,
  type GatewayTraffic,
  gatewayPaths,
  readWhole,
  watchFile,
  writeWhole,
} from './gateway-files.ts';

export type GatewayLink = {
  /** Tells the gateway what to serve; the same again costs nothing. */
  publish(snapshot: GatewaySnapshot): void;
  /** What it last said of a pod; null when it is away. */
  statusOf(podId: string): GatewayPodStatus | null;
  /** What went on at its doors by its last report; null when it is away. */
  traffic(): GatewayTraffic | null;
  /** Calls back after each of its reports. */
  follow(onReport: () => void): { stop(): Promise<void> };
};

/** By files in the agent's home. */
export function createGatewayLink(options: {
  agentHome: string;
  clock: Clock;
  log: Log;
}): GatewayLink {
  const paths = gatewayPaths(options.agentHome);
  const { clock, log } = options;
  let published = '';
  let status: GatewayStatus | null = null;

  return {
    publish(snapshot) {
      const text = JSON.stringify(snapshot);
      if (text === published && existsSync(paths.snapshot)) return;
      try {
        writeWhole(paths.snapshot, snapshot);
        published = text;
      } catch (error) {
        // The next change, or the next start, tries again.
        log.error({ detail: messageOf(error) }, 'the SSH gateway could not be told of a change');
      }
    },
    traffic: () => (status !== null && isAlive(status.pid) ? status.traffic : null),
    statusOf: (podId) =>
      status !== null && isAlive(status.pid) ? (status.pods[podId] ?? null) : null,
    follow: (onReport) =>
      watchFile({
        path: paths.status,
        clock,
        look() {
          status = readWhole(paths.status, GatewayStatus);
          onReport();
        },
        onError: (error) => log.error({ err: error }, 'the SSH gateway could not be followed'),
      }),
  };
}

/** Whether there is such a process: a gateway that was killed leaves its last report behind. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
