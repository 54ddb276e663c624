import { expect, it } from 'vitest';
import { withOwnCredentials } from './own-credentials.ts';

it('finds the credentials of a service of ours where this process has them, and nothing else', () => {
  const named = {
    AGENT_POLICY: '/run/credentials/podwright-agent.service/policy',
    AGENT_HOME: '/var/lib/podwright',
    OTHER: '/run/credentials/sshd.service/key',
  };
  expect(withOwnCredentials(named)).toBe(named);
  const folder = '/run/credentials/podwright-agent-update.service';
  expect(withOwnCredentials({ ...named, CREDENTIALS_DIRECTORY: folder })).toEqual({
    ...named,
    CREDENTIALS_DIRECTORY: folder,
    AGENT_POLICY: `${folder}/policy`,
  });
});
