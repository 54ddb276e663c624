/** The agent's side of the files that it shares with the SSH gateway. */
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
  readJsonFile,
  watchFile,
  writeJsonFile,
} from './gateway-files.ts';

export type GatewayLink = {
  /** Writes the pods to serve; does nothing if they are unchanged. */
  publish(snapshot: GatewaySnapshot): void;
  /** Last reported status of a pod; null while the gateway is not running. */
  statusOf(podId: string): GatewayPodStatus | null;
  /** Last reported traffic; null while the gateway is not running. */
  traffic(): GatewayTraffic | null;
  /** Calls `onReport` after each report of the gateway. */
  follow(onReport: () => void): { stop(): Promise<void> };
};

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
        writeJsonFile(paths.snapshot, snapshot);
        published = text;
      } catch (error) {
        // Retried with the next change or the next start.
        log.error({ detail: messageOf(error) }, 'SSH gateway snapshot could not be written');
      }
    },
    traffic: () => (status !== null && isAlive(status.pid) ? status.traffic : null),
    statusOf: (podId) =>
      status !== null && isAlive(status.pid) ? (status.pods[podId] ?? null) : null,
    follow: (onReport) =>
      watchFile({
        path: paths.status,
        clock,
        onChange() {
          status = readJsonFile(paths.status, GatewayStatus);
          onReport();
        },
        onError: (error) => log.error({ err: error }, 'SSH gateway status could not be read'),
      }),
  };
}

/** Returns true if the process exists. Needed because a killed gateway leaves its status file behind. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
