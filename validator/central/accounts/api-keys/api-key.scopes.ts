/** The scope catalogue: what scopes will mean. None is enforced yet, every key holds all rights (contract 12.7). */
import type { z } from 'zod';
import type { ApiKeyScopes } from './api-key.schemas.ts';

export const API_KEY_SCOPES: z.output<typeof ApiKeyScopes> = {
  available: false,
  scopes: [
    {
      scope: 'read',
      title: 'Read',
      description: 'Read everything of the account but secrets.',
      can: ['list nodes, pods, templates and keys', 'read logs, metrics and events'],
      route_families: ['/executors', '/pods', '/templates', '/ssh-keys', '/users/me'],
      default: true,
    },
    {
      scope: 'rent',
      title: 'Rent',
      description: 'Rent nodes and end what was rented.',
      can: ['rent a node', 'reboot, edit and delete pods'],
      route_families: ['/executors', '/pods'],
      default: true,
    },
    {
      scope: 'manage',
      title: 'Manage',
      description: 'Change templates, SSH keys and settings.',
      can: ['create, change and delete templates and SSH keys', 'change preferences'],
      route_families: ['/templates', '/ssh-keys', '/users/me'],
      default: true,
    },
    {
      scope: 'billing',
      title: 'Billing',
      description: 'Move money.',
      can: ['transfer credits', 'configure auto top-up'],
      route_families: ['/users/me/transfer-credits', '/users/me/auto-top-up'],
      default: true,
    },
  ],
  pod_visibility: [{ value: 'account', description: 'Every pod of the account' }],
  money_routes: ['/executors/{executor_uuid}/rent'],
};
