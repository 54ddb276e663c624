/** Wire schemas of chat links. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { SUCCESS } from '../../platform/openapi/field-texts.ts';

export const ChatOAuthAuthorizationUrlResponse = z
  .object(
    described(
      { authorization_url: z.string().nullable() },
      {
        authorization_url:
          'Address at which the user allows the link; null if no chat platform is configured.',
      },
    ),
  )
  .meta({
    id: 'ChatOAuthAuthorizationUrlResponse',
    description: 'Start of a link to a chat account.',
  });

export const ChatOAuthCallbackResponse = z
  .object(
    described(
      {
        connected: z.boolean(),
        discord_id: z.string().nullable(),
        discord_username: z.string().nullable(),
      },
      {
        connected: 'True if a chat account is now linked.',
        discord_id: 'Id of the chat user; null if none is linked.',
        discord_username: 'Name of the chat user; null if none is linked.',
      },
    ),
  )
  .meta({ id: 'ChatOAuthCallbackResponse' });
export type ChatOAuthCallbackResponse = z.output<typeof ChatOAuthCallbackResponse>;

/** Query that the platform appends to its redirect (RFC 6749, section 4.1.2). */
export const ChatCallbackQuery = z
  .object(
    described(
      {
        code: z.string().max(2_000).optional(),
        state: z.string().max(200).optional(),
        error: z.string().max(200).optional(),
      },
      {
        code: 'Code that the chat platform appended to the redirect.',
        state: 'State that the chat platform returned unchanged.',
        error: 'Error of the chat platform, if the user denied access.',
      },
    ),
  )
  .meta({ example: { state: 'state-of-the-link', error: 'access_denied' } });
export type ChatCallbackQuery = z.output<typeof ChatCallbackQuery>;

export const ChatUnlinked = z
  .object(described({ success: z.literal(true) }, { success: SUCCESS }))
  .meta({ id: 'ChatUnlinked' });
