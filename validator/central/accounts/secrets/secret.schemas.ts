/** Wire schemas of secrets. The value is write-only. */
import { z } from 'zod';
import { MAX_SECRET_BYTES, SecretName } from '#shared/api/agent/pod-secrets.ts';
import { described } from '#shared/api/described.ts';
import { CREATED_AT } from '../../platform/openapi/field-texts.ts';
import { NaiveTime } from '../../platform/wire.ts';

const Value = z
  .string()
  .refine(
    (text) => Buffer.byteLength(text) <= MAX_SECRET_BYTES,
    `More than ${MAX_SECRET_BYTES} bytes`,
  );

export const CreateSecret = z
  .object(
    described(
      { name: SecretName, value: Value },
      {
        name: 'Name of the file below `/run/secrets`: 1 to 64 letters, digits, `_`, `.` and `-`.',
        value: 'Content of the file: at most 64 KiB of UTF-8. It is never returned.',
      },
    ),
  )
  .meta({ id: 'CreateSecret', example: { name: 'hf_token', value: 'hf_example' } });
export type CreateSecret = z.output<typeof CreateSecret>;

export const Secret = z
  .object(
    described(
      { id: z.uuid(), name: z.string(), created_at: NaiveTime, updated_at: NaiveTime },
      {
        id: 'Id of the secret.',
        name: 'Name of the file below `/run/secrets`, unique within the account.',
        created_at: CREATED_AT,
        updated_at: 'Time at which the value was last set (UTC).',
      },
    ),
  )
  .meta({ id: 'Secret' });
export type SecretResponse = z.output<typeof Secret>;
