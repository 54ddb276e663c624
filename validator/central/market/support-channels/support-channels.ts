/** Composes support channels: those of the configured platform, or else channels that the database stores. */
import type { HttpServer } from '#shared/http/server.ts';
import type { CentralDeps } from '../../platform/central-deps.ts';
import { createLocalChannels } from './local-channels.ts';
import { registerSupportChannelRoutes } from './support-channel.routes.ts';
import { createPodChannels } from './support-channel.service.ts';

/** Registers the routes below /api. */
export function registerSupportChannels(api: HttpServer, { ports, options }: CentralDeps): void {
  const { db, clock, random } = ports;
  const baseUrl = options.channelUrl ?? null;
  const channels = ports.channels ?? createLocalChannels({ db, clock, random, baseUrl });
  registerSupportChannelRoutes(api, createPodChannels({ db, clock, channels }));
}
