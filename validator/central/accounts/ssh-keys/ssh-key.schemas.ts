/** Wire schemas of SSH keys. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { CREATED_AT, UPDATED_AT } from '../../platform/openapi/field-texts.ts';
import { displayName, NaiveTime } from '../../platform/wire.ts';
import { MAX_PUBLIC_KEY_CHARS, parsePublicKey } from './public-key.ts';

export const SshKey = z
  .object(
    described(
      {
        id: z.uuid(),
        name: z.string(),
        public_key: z.string(),
        user_id: z.uuid(),
        created_at: NaiveTime,
        updated_at: NaiveTime,
      },
      {
        id: 'Id of the key.',
        name: 'Name that the account gave to the key.',
        public_key: 'Public key in OpenSSH format, without options.',
        user_id: 'Id of the account.',
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
      },
    ),
  )
  .meta({ id: 'SshKey' });
export type SshKeyResponse = z.output<typeof SshKey>;

/** Parses and normalises a public key. */
export const PublicKeyText = z
  .string()
  .max(MAX_PUBLIC_KEY_CHARS)
  .transform((text, context) => {
    const result = parsePublicKey(text);
    if ('key' in result) return result.key;
    context.addIssue({ code: 'custom', message: result.problem });
    return z.NEVER;
  });

export const CreateSshKey = z
  .object(
    described(
      { name: displayName(100), public_key: PublicKeyText },
      {
        name: "Name for the account's own use, 1 to 100 characters.",
        public_key:
          'One public key in OpenSSH format, as in an `.pub` file. Options before the key are refused.',
      },
    ),
  )
  .meta({
    id: 'CreateSshKey',
    example: {
      name: 'laptop',
      public_key:
        'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me@laptop',
    },
  });
export type CreateSshKey = z.output<typeof CreateSshKey>;
