/** The catalogue of scopes that GET /keys/scopes returns. */
import type { z } from 'zod';
import type { KeyScope } from '../../platform/identity.ts';
import { MONEY_ROUTES, pathsOf } from '../auth/route-scopes.ts';
import type { ApiKeyScopes } from './api-key.schemas.ts';

type Scope = z.output<typeof ApiKeyScopes>['scopes'][number];

function entry(scope: KeyScope, texts: Pick<Scope, 'title' | 'description' | 'can'>): Scope {
  return { scope, ...texts, route_families: pathsOf(scope), default: true };
}

export const SCOPE_CATALOGUE: z.output<typeof ApiKeyScopes> = {
  available: true,
  scopes: [
    entry('read', {
      title: 'Read',
      description: 'Read everything of the account except secret values.',
      can: ['list pods, volumes, templates and keys', 'read logs, metrics, events and the ledger'],
    }),
    entry('rent', {
      title: 'Rent',
      description: 'Rent nodes, and use and end pods.',
      can: [
        'rent a node',
        'reboot, change and delete pods, and open terminals',
        'back up and restore the data of a pod',
      ],
    }),
    entry('manage', {
      title: 'Manage',
      description: 'Change the account’s settings and objects, and move money.',
      can: [
        'create, change and delete templates, SSH keys, secrets, volumes and webhooks',
        'change preferences and backup schedules',
        'transfer credit and configure the auto top-up',
      ],
    }),
  ],
  pod_visibility: [{ value: 'account', description: 'Every pod of the account' }],
  money_routes: [...MONEY_ROUTES],
};
