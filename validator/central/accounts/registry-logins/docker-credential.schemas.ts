/** Wire schemas of logins for image registries. The password is write-only. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { CREATED_AT, UPDATED_AT } from '../../platform/openapi/field-texts.ts';
import { displayName, NaiveTime, optional } from '../../platform/wire.ts';

const NO_CONTROL = /^[^\p{Cc}]*$/u;
const username = z.string().trim().min(1).max(255).regex(NO_CONTROL, 'Contains control characters');
const password = z.string().min(1).max(8_192).regex(NO_CONTROL, 'Contains control characters');

export const CreateDockerCredential = z
  .object(
    described(
      { name: optional(displayName(100)), docker_username: username, docker_password: password },
      {
        name: "Name for the account's own use; absent for none.",
        docker_username: 'User name at the registry.',
        docker_password:
          'Password or access token at the registry. It is stored encrypted and never returned.',
      },
    ),
  )
  .meta({
    id: 'CreateDockerCredential',
    example: { name: 'ghcr', docker_username: 'octocat', docker_password: 'example-token' },
  });
export type CreateDockerCredential = z.output<typeof CreateDockerCredential>;

/** Absent and null fields are unchanged. */
export const UpdateDockerCredential = z
  .object(
    described(
      {
        name: optional(displayName(100)),
        docker_username: optional(username),
        docker_password: optional(password),
      },
      {
        name: 'New name; absent or null leaves it unchanged.',
        docker_username: 'New user name; absent or null leaves it unchanged.',
        docker_password: 'New password or access token; absent or null leaves it unchanged.',
      },
    ),
  )
  .meta({ id: 'UpdateDockerCredential', example: { docker_password: 'rotated-token' } });
export type UpdateDockerCredential = z.output<typeof UpdateDockerCredential>;

export const DockerCredential = z
  .object(
    described(
      {
        id: z.uuid(),
        name: z.string().nullable(),
        docker_username: z.string(),
        created_at: NaiveTime,
        updated_at: NaiveTime,
      },
      {
        id: 'Id of the login, which templates name in `docker_credential_id`.',
        name: 'Name that the account gave to the login; null for none.',
        docker_username: 'User name at the registry.',
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
      },
    ),
  )
  .meta({ id: 'DockerCredential' });
export type DockerCredentialResponse = z.output<typeof DockerCredential>;
