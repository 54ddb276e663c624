/** Wire schemas of chat links. */
import { z } from 'zod';

export const ChatOAuthAuthorizationUrlResponse = z
  .object({ authorization_url: z.string() })
  .meta({ id: 'ChatOAuthAuthorizationUrlResponse' });

export const ChatOAuthCallbackResponse = z
  .object({
    connected: z.boolean(),
    discord_id: z.string().nullable(),
    discord_username: z.string().nullable(),
  })
  .meta({ id: 'ChatOAuthCallbackResponse' });
export type ChatOAuthCallbackResponse = z.output<typeof ChatOAuthCallbackResponse>;

/** Query that the platform appends to its redirect (RFC 6749, section 4.1.2). */
export const ChatCallbackQuery = z.object({
  code: z.string().max(2_000).optional(),
  state: z.string().max(200).optional(),
  error: z.string().max(200).optional(),
});
export type ChatCallbackQuery = z.output<typeof ChatCallbackQuery>;

export const ChatUnlinked = z.object({ success: z.literal(true) }).meta({ id: 'ChatUnlinked' });
