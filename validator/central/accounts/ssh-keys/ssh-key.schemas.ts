/** Wire schemas of SSH keys. */
import { z } from 'zod';
import { displayName, NaiveTime } from '../../platform/wire.ts';
import { MAX_PUBLIC_KEY_CHARS, parsePublicKey } from './public-key.ts';

export const SshKey = z
  .object({
    id: z.uuid(),
    name: z.string(),
    public_key: z.string(),
    user_id: z.uuid(),
    created_at: NaiveTime,
    updated_at: NaiveTime,
  })
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
  .object({ name: displayName(100), public_key: PublicKeyText })
  .meta({ id: 'CreateSshKey' });
export type CreateSshKey = z.output<typeof CreateSshKey>;
