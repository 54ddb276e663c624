/** Wire schemas of logins for image registries. The password is write-only. */
import { z } from 'zod';
import { displayName, NaiveTime, optional } from '../../platform/wire.ts';

const NO_CONTROL = /^[^\p{Cc}]*$/u;
const username = z.string().trim().min(1).max(255).regex(NO_CONTROL, 'Contains control characters');
const password = z.string().min(1).max(8_192).regex(NO_CONTROL, 'Contains control characters');

export const CreateDockerCredential = z
  .object({
    name: optional(displayName(100)),
    docker_username: username,
    docker_password: password,
  })
  .meta({ id: 'CreateDockerCredential' });
export type CreateDockerCredential = z.output<typeof CreateDockerCredential>;

/** Absent and null fields stay as they are. */
export const UpdateDockerCredential = z
  .object({
    name: optional(displayName(100)),
    docker_username: optional(username),
    docker_password: optional(password),
  })
  .meta({ id: 'UpdateDockerCredential' });
export type UpdateDockerCredential = z.output<typeof UpdateDockerCredential>;

export const DockerCredential = z
  .object({
    id: z.uuid(),
    name: z.string().nullable(),
    docker_username: z.string(),
    created_at: NaiveTime,
    updated_at: NaiveTime,
  })
  .meta({ id: 'DockerCredential' });
export type DockerCredentialResponse = z.output<typeof DockerCredential>;
