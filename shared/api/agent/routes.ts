/**
 * The signed routes of the agent, the roles that may call them, and whether the gateway relays them for the central
 * API.
 */
import type { Role } from '../../signing/request-verifier.ts';

export type AgentRoute = {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Path pattern in fastify's syntax. */
  path: string;
  roles: readonly Role[];
  relayed: boolean;
  /** The route also accepts WebSockets, or only them. */
  websocket?: true;
};

const READERS = ['validator-control', 'validator-read', 'provider-local'] as const;
const CONTROLLERS = ['validator-control'] as const;

/** The agent rejects requests to unlisted routes before any work. */
export const AGENT_ROUTES = [
  { method: 'GET', path: '/v1/inventory', roles: READERS, relayed: true },
  { method: 'GET', path: '/v1/pods', roles: READERS, relayed: true },
  { method: 'GET', path: '/v1/pods/:id', roles: READERS, relayed: true },
  { method: 'GET', path: '/v1/pods/:id/metrics', roles: READERS, relayed: true },
  { method: 'GET', path: '/v1/metrics/host', roles: READERS, relayed: true },
  { method: 'GET', path: '/v1/metrics/history', roles: READERS, relayed: true },
  { method: 'PUT', path: '/v1/pods/:id', roles: CONTROLLERS, relayed: true },
  { method: 'DELETE', path: '/v1/pods/:id', roles: CONTROLLERS, relayed: true },
  { method: 'POST', path: '/v1/pods/:id/reboot', roles: CONTROLLERS, relayed: true },
  { method: 'PUT', path: '/v1/pods/:id/ssh-keys', roles: CONTROLLERS, relayed: true },
  { method: 'PUT', path: '/v1/pods/:id/standing', roles: CONTROLLERS, relayed: true },
  { method: 'POST', path: '/v1/pods/:id/notebook', roles: CONTROLLERS, relayed: true },
  { method: 'POST', path: '/v1/pods/:id/backups', roles: CONTROLLERS, relayed: true },
  { method: 'POST', path: '/v1/pods/:id/restores', roles: CONTROLLERS, relayed: true },
  { method: 'GET', path: '/v1/pods/:id/restore-target', roles: CONTROLLERS, relayed: true },
  { method: 'POST', path: '/v1/pods/:id/verifications', roles: CONTROLLERS, relayed: true },
  { method: 'GET', path: '/v1/volumes', roles: READERS, relayed: true },
  { method: 'PUT', path: '/v1/volumes/:id', roles: CONTROLLERS, relayed: true },
  { method: 'DELETE', path: '/v1/volumes/:id', roles: CONTROLLERS, relayed: true },
  { method: 'POST', path: '/v1/volumes/:id/backups', roles: CONTROLLERS, relayed: true },
  { method: 'POST', path: '/v1/volumes/:id/restores', roles: CONTROLLERS, relayed: true },
  { method: 'GET', path: '/v1/operations', roles: READERS, relayed: true },
  { method: 'GET', path: '/v1/operations/:id', roles: READERS, relayed: true },
  { method: 'POST', path: '/v1/operations/:id/cancel', roles: CONTROLLERS, relayed: true },
  {
    method: 'POST',
    path: '/v1/pods/explain',
    roles: [...CONTROLLERS, 'provider-local'],
    relayed: false,
  },
  { method: 'GET', path: '/v1/pods/:id/logs', roles: CONTROLLERS, relayed: true, websocket: true },
  { method: 'GET', path: '/v1/pods/:id/exec', roles: CONTROLLERS, relayed: true, websocket: true },
  { method: 'POST', path: '/v1/challenges', roles: CONTROLLERS, relayed: false },
  { method: 'POST', path: '/v1/challenges/:id/open', roles: CONTROLLERS, relayed: false },
  { method: 'POST', path: '/v1/port-checks', roles: CONTROLLERS, relayed: false },
  { method: 'POST', path: '/v1/egress-checks', roles: CONTROLLERS, relayed: false },
  { method: 'POST', path: '/v1/image-checks', roles: CONTROLLERS, relayed: false },
  {
    method: 'GET',
    path: '/v1/speed-test',
    roles: CONTROLLERS,
    relayed: false,
    websocket: true,
  },
  { method: 'POST', path: '/v1/verify', roles: [...CONTROLLERS, 'provider-local'], relayed: false },
] as const satisfies readonly AgentRoute[];
