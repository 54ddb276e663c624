import { expect, it } from 'vitest';
import { repositoryVariables } from './operations.ts';

const REST = { RESTIC_REST_USERNAME: 'me', RESTIC_REST_PASSWORD: 'a/b@c:d' };

it.each([
  [
    'rest:http://host:8000/restic/x/',
    REST,
    { RESTIC_REPOSITORY: 'rest:http://me:a%2Fb%40c%3Ad@host:8000/restic/x/' },
  ],
  ['rest:https://host', REST, { RESTIC_REPOSITORY: 'rest:https://me:a%2Fb%40c%3Ad@host' }],
  ['rest:http://host/', {}, { RESTIC_REPOSITORY: 'rest:http://host/' }],
  ['/srv/backups', REST, { ...REST, RESTIC_REPOSITORY: '/srv/backups' }],
  [
    's3:https://host/b',
    { AWS_REGION: 'x' },
    { AWS_REGION: 'x', RESTIC_REPOSITORY: 's3:https://host/b' },
  ],
])('sets the environment of restic for %s with %j', (location, environment, variables) => {
  expect(repositoryVariables({ location, environment })).toEqual(variables);
});
